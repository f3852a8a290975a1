#include "worker/engine/grammar_gate.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "common/text.h"
#include "worker/grammar/code_points.h"
#include "worker/grammar/gbnf_check.h"

namespace berth::worker {
namespace {

constexpr float kRefusedLogit = -std::numeric_limits<float>::infinity();

// The model's tokens that a grammar names.
Result<std::vector<GbnfProgram::Token>> find_tokens(const GbnfModel& model,
                                                    const LlamaVocabulary& vocabulary) {
  std::vector<GbnfProgram::Token> found;
  for (const auto& named : model.tokens) {
    auto id = named.id;
    if (!named.text.empty()) {
      const auto tokens = vocabulary.tokenize(named.text, false);
      if (!tokens) return fail(tokens.error());
      if (tokens->size() != 1) {
        return gbnf_error(named.line, "the model has no token " + named.text +
                                          "; write it as a literal, or use a token that it has");
      }
      id = static_cast<std::uint32_t>(tokens->front());
    }
    found.push_back({id, named.any_other});
  }
  return found;
}

std::uint32_t rule_named_root(const GbnfModel& model) {
  const auto found = std::find(model.names.begin(), model.names.end(), "root");
  return static_cast<std::uint32_t>(found - model.names.begin());
}

// A rule of one of the triggers and the root behind it; returns its index.
std::uint32_t add_trigger_rule(GbnfModel& model, const std::vector<std::string>& triggers) {
  using Kind = GbnfElement::Kind;
  const auto root = rule_named_root(model);
  GbnfRule rule;
  for (std::string_view trigger : triggers) {
    if (!rule.elements.empty()) rule.elements.push_back({Kind::kAlternative, 0});
    while (!trigger.empty()) rule.elements.push_back({Kind::kCharacter, take_code_point(trigger)});
    rule.elements.push_back({Kind::kReference, root});
  }
  model.rules.push_back(std::move(rule));
  return static_cast<std::uint32_t>(model.rules.size() - 1);
}

// As far as they begin in it.
std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned>(byte) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

GrammarGate::GrammarGate(LlamaVocabulary vocabulary, GbnfStates states,
                         std::vector<std::string> triggers)
    : vocabulary_(vocabulary), states_(std::move(states)), triggers_(std::move(triggers)) {
  if (triggers_.empty()) place_ = GrammarPlace{states_.start(), {}};
  for (const auto& trigger : triggers_) {
    longest_trigger_ = std::max(longest_trigger_, trigger.size());
  }
}

Result<std::unique_ptr<GrammarGate>> GrammarGate::make(const llama_vocab* vocabulary,
                                                       const std::string& grammar,
                                                       const std::vector<std::string>& triggers,
                                                       const TokenStarts* starts) {
  auto model = checked_gbnf(grammar, GbnfBounds::kConverterBytes);
  if (!model) return fail(model.error());
  auto tokens = find_tokens(*model, LlamaVocabulary(vocabulary));
  if (!tokens) return fail(tokens.error());
  for (const auto& trigger : triggers) {
    if (!first_invalid_utf8(trigger)) continue;
    return fail(Reason::kInvalidArgument, "One of the grammar_triggers is not UTF-8.");
  }
  const auto root = triggers.empty() ? rule_named_root(*model) : add_trigger_rule(*model, triggers);
  const bool names_tokens = !tokens->empty();
  GbnfStates states(std::make_shared<GbnfProgram>(*model, std::move(*tokens), root));
  std::unique_ptr<GrammarGate> gate(
      new GrammarGate(LlamaVocabulary(vocabulary), std::move(states), triggers));
  // A token that the grammar names is allowed whatever its text begins with.
  if (!names_tokens) gate->starts_ = starts;
  return gate;
}

void GrammarGate::begin_question() {
  states_.begin_token();
  if (place_) place_->state = states_.keep_only(place_->state);
}

bool GrammarGate::allows(TokenId token) {
  begin_question();
  if (place_) return !refuses(token);
  if (vocabulary_.ends_generation(token)) return true;
  const auto started = after_trigger(token);
  return !started || started->state != GbnfStates::kRefused;
}

void GrammarGate::mark_refused(std::span<llama_token_data> candidates) {
  begin_question();
  for (auto& candidate : candidates) {
    if (refuses(candidate.id)) candidate.logit = kRefusedLogit;
  }
}

std::optional<std::span<const TokenId>> GrammarGate::possible() {
  if (starts_ == nullptr) return std::nullopt;
  begin_question();
  const auto others = starts_->others();
  possible_.assign(others.begin(), others.end());
  const auto characters = starts_->characters();
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (refuses(characters[i])) continue;
    const auto group = starts_->beginning_with(i);
    possible_.insert(possible_.end(), group.begin(), group.end());
  }
  return possible_;
}

Status GrammarGate::accept(TokenId token) {
  if (vocabulary_.ends_generation(token)) return {};
  begin_question();
  if (place_) {
    place_ = after(token);
    characters_ += characters_of(text_);
  } else {
    place_ = after_trigger(token);
    if (!place_) {
      remember(token);
      return {};
    }
    tail_.clear();
  }
  if (place_->state == GbnfStates::kRefused) {
    return fail(Reason::kInternal, "A token was chosen that the grammar refuses.");
  }
  place_->state = states_.keep_only(place_->state);
  if (place_->state != GbnfStates::kTooMany) return {};
  return fail(Reason::kInvalidArgument,
              "The grammar is ambiguous while it nests: after " + std::to_string(characters_) +
                  " characters it could stand at more than " +
                  std::to_string(GbnfStates::kMostReturns) +
                  " places. Make the alternatives differ in their first characters.");
}

GrammarPlace GrammarGate::after(TokenId token) {
  return after_token(states_, *place_, static_cast<std::uint32_t>(token), text_of(token));
}

bool GrammarGate::refuses(TokenId token) {
  if (vocabulary_.ends_generation(token)) return !is_complete(states_, *place_);
  return after(token).state == GbnfStates::kRefused;
}

const std::string& GrammarGate::text_of(TokenId token) {
  text_.clear();
  vocabulary_.append_piece(token, text_, true);
  return text_;
}

std::optional<GrammarPlace> GrammarGate::after_trigger(TokenId token) {
  const auto before = tail_.size();
  tail_ += text_of(token);
  auto begin = std::string::npos;
  for (const auto& trigger : triggers_) begin = std::min(begin, tail_.find(trigger));
  std::optional<GrammarPlace> place;
  if (begin != std::string::npos) {
    place = after_text(states_, {states_.start(), {}}, std::string_view(tail_).substr(begin));
  }
  tail_.resize(before);
  return place;
}

void GrammarGate::remember(TokenId token) {
  tail_ += text_of(token);
  tail_.erase(0, tail_.size() - std::min(tail_.size(), longest_trigger_ - 1));
}

}  // namespace berth::worker
