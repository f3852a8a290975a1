#include "worker/engine/grammar_gate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>

namespace berth::worker {
namespace {

constexpr const char* kRoot = "root";

// As a literal of GBNF, whose escapes are those of C.
std::string gbnf_literal(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7F) {
      out.append("\\x").push_back(kDigits[byte / 16]);
      out.push_back(kDigits[byte % 16]);
      continue;
    }
    if (letter == '"' || letter == '\\') out.push_back('\\');
    out.push_back(letter);
  }
  return out + "\"";
}

std::string regex_literal(std::string_view text) {
  constexpr std::string_view kSpecial = "^$\\.*+?()[]{}|";
  std::string out;
  for (const char letter : text) {
    if (kSpecial.find(letter) != std::string_view::npos) out.push_back('\\');
    out.push_back(letter);
  }
  return out;
}

// Whether a grammar names tokens (<name> or <[id]>), which it allows whatever their text is. May
// say so where it does not.
bool names_tokens(std::string_view grammar) {
  char closing = 0;  // of the literal or class that we are in, or a newline for a comment
  for (std::size_t at = 0; at < grammar.size(); ++at) {
    const char letter = grammar[at];
    if (closing != 0) {
      if (letter == '\\' && closing != '\n') ++at;
      if (letter == closing) closing = 0;
      continue;
    }
    if (letter == '<') return true;
    if (letter == '"') closing = '"';
    if (letter == '[') closing = ']';
    if (letter == '#') closing = '\n';
  }
  return false;
}

// A rule's name that the grammar does not have.
std::string unused_name(const std::string& grammar) {
  std::string name = "triggered";
  while (grammar.find(name) != std::string::npos) name += "-x";
  return name;
}

std::string with_trigger_rule(const std::string& grammar, const std::string& name,
                              const std::vector<std::string>& triggers) {
  std::string alternatives;
  for (const auto& trigger : triggers) {
    if (!alternatives.empty()) alternatives += " | ";
    alternatives += gbnf_literal(trigger);
  }
  return grammar + "\n" + name + " ::= (" + alternatives + ") " + kRoot + "\n";
}

}  // namespace

GrammarGate::GrammarGate(const llama_vocab* vocabulary, std::string grammar,
                         std::vector<std::string> triggers)
    : vocabulary_(vocabulary), grammar_(std::move(grammar)), triggers_(std::move(triggers)) {
  if (triggers_.empty()) return;
  root_ = unused_name(grammar_);
  grammar_ = with_trigger_rule(grammar_, root_, triggers_);
  for (const auto& trigger : triggers_) {
    patterns_.push_back(regex_literal(trigger));
    longest_trigger_ = std::max(longest_trigger_, trigger.size());
  }
}

Result<std::unique_ptr<GrammarGate>> GrammarGate::make(const llama_vocab* vocabulary,
                                                       const std::string& grammar,
                                                       const std::vector<std::string>& triggers,
                                                       const TokenStarts* starts) {
  const auto refused = [](const std::string& why) {
    return fail(Reason::kInvalidArgument, "The grammar cannot be used" + why);
  };
  try {
    std::unique_ptr<GrammarGate> gate(new GrammarGate(vocabulary, grammar, triggers));
    SamplerPointer sampler(triggers.empty()
                               ? llama_sampler_init_grammar(vocabulary, grammar.c_str(), kRoot)
                               : gate->make_lazy().release());
    if (!sampler) {
      return refused(
          ": libllama refuses it. It needs a rule `root`, no left recursion, and every "
          "rule defined; the worker's log has the reason.");
    }
    if (triggers.empty()) gate->active_ = std::move(sampler);
    if (!names_tokens(grammar)) gate->starts_ = starts;
    return gate;
  } catch (const std::exception& problem) {
    return refused(std::string(": ") + problem.what());
  }
}

SamplerPointer GrammarGate::make_lazy() const {
  std::vector<const char*> patterns;
  for (const auto& pattern : patterns_) patterns.push_back(pattern.c_str());
  return SamplerPointer(
      llama_sampler_init_grammar_lazy_patterns(vocabulary_.get(), grammar_.c_str(), root_.c_str(),
                                               patterns.data(), patterns.size(), nullptr, 0));
}

bool GrammarGate::allows(TokenId token) {
  if (active_) {
    llama_token_data one{token, 1, 0};
    mark_refused({&one, 1});
    return !std::isinf(one.logit);
  }
  if (vocabulary_.ends_generation(token) || !completes_trigger(token)) return true;
  started_ = start_behind(token);
  started_by_ = token;
  return started_ != nullptr;
}

void GrammarGate::mark_refused(std::span<llama_token_data> candidates) {
  llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(active_.get(), &array);
}

std::optional<std::span<const TokenId>> GrammarGate::possible() {
  if (starts_ == nullptr) return std::nullopt;
  const auto characters = starts_->characters();
  characters_.clear();
  for (const TokenId token : characters) characters_.push_back(llama_token_data{token, 1, 0});
  mark_refused(characters_);
  const auto others = starts_->others();
  possible_.assign(others.begin(), others.end());
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (std::isinf(characters_[i].logit)) continue;
    const auto group = starts_->beginning_with(i);
    possible_.insert(possible_.end(), group.begin(), group.end());
  }
  return possible_;
}

void GrammarGate::accept(TokenId token) {
  if (active_) {
    llama_sampler_accept(active_.get(), token);
    return;
  }
  if (started_ && started_by_ == token) {
    active_ = std::move(started_);
    tail_.clear();
    tail_text_.clear();
    return;
  }
  remember(token);
}

void GrammarGate::append_text(TokenId token, std::string& out) const {
  vocabulary_.append_piece(token, out, true);
}

bool GrammarGate::completes_trigger(TokenId token) {
  const auto before = tail_text_.size();
  append_text(token, tail_text_);
  const bool found = std::any_of(triggers_.begin(), triggers_.end(), [&](const auto& trigger) {
    return tail_text_.find(trigger) != std::string::npos;
  });
  tail_text_.resize(before);
  return found;
}

SamplerPointer GrammarGate::start_behind(TokenId token) {
  auto sampler = make_lazy();
  if (!sampler) return nullptr;
  try {
    for (const auto& [earlier, size] : tail_) llama_sampler_accept(sampler.get(), earlier);
    llama_sampler_accept(sampler.get(), token);
  } catch (const std::exception&) {
    return nullptr;  // libllama's word for a text that does not fit
  }
  return sampler;
}

void GrammarGate::remember(TokenId token) {
  const auto before = tail_text_.size();
  append_text(token, tail_text_);
  tail_.emplace_back(token, tail_text_.size() - before);
  std::size_t tokens = 0;
  std::size_t bytes = 0;
  while (tokens < tail_.size() &&
         tail_text_.size() - bytes - tail_[tokens].second + 1 >= longest_trigger_) {
    bytes += tail_[tokens].second;
    ++tokens;
  }
  tail_.erase(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(tokens));
  tail_text_.erase(0, bytes);
}

}  // namespace berth::worker
