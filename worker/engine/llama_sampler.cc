#include "worker/engine/llama_sampler.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>

#include "worker/engine/best_logit.h"
#include "worker/engine/log_sum_exp.h"
#include "worker/engine/sampler_chain.h"
#include "worker/engine/settings_check.h"

namespace berth::worker {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
// libllama sorts by buckets whose number overflows an int at outputs above 3e8, and it divides them
// by temperatures down to kLeastTemperature before. Only differences matter, so higher ones are
// lowered; usual ones are not, to draw exactly what libllama would.
constexpr float kHigh = 1e5F;
// Draws that may be refused one by one: by a sleeping grammar that refuses what follows a trigger,
// or by one that takes too long to ask it about every token first.
constexpr int kMostRefusals = 64;

tl::unexpected<Error> no_token() {
  return fail(Reason::kInvalidArgument,
              "The settings leave no token that could come next: all are banned, or biases and "
              "penalties are too large.");
}

tl::unexpected<Error> grammar_allows_none() {
  return fail(Reason::kInvalidArgument,
              "The grammar allows no token here that the model has and the settings do not ban.");
}

tl::unexpected<Error> grammar_takes_too_long() {
  return fail(Reason::kInvalidArgument,
              "The grammar takes too long to find a token that it allows: " +
                  std::to_string(kMostRefusals) +
                  " likely ones were refused one by one. Use fewer alternatives that can begin at "
                  "any place, or a top_k.");
}

}  // namespace

Result<std::unique_ptr<Sampler>> LlamaSampler::make(const llama_vocab* vocabulary,
                                                    const SamplingSettings& wanted,
                                                    std::uint32_t context,
                                                    const TokenStarts* starts, DryCache* dry) {
  const auto size = static_cast<std::uint32_t>(llama_vocab_n_tokens(vocabulary));
  if (auto checked = check_settings(wanted, size); !checked) return fail(checked.error());
  context = std::max(context, 1U);
  try {
    auto settings = wanted;
    if (settings.top_k >= size) settings.top_k = 0;  // no cut, but libllama would sort them all
    std::unique_ptr<LlamaSampler> made(new LlamaSampler);
    made->vocabulary_size_ = size;
    made->biases_ = all_biases(vocabulary, settings);
    made->recent_ = RecentTokens(penalty_window(settings, context), size);
    made->penalties_ = make_penalties(vocabulary, context, settings, dry);
    if (!is_greedy(settings) || cuts_the_likeliest(settings)) {
      made->choice_ = make_choice(vocabulary, settings);
      if (starts_with_top_k(settings)) made->top_k_ = settings.top_k;
    }
    made->top_logprobs_ = settings.top_logprobs;
    if (!settings.grammar.empty()) {
      auto gate =
          GrammarGate::make(vocabulary, settings.grammar, settings.grammar_triggers, starts);
      if (!gate) return fail(gate.error());
      made->grammar_ = std::move(*gate);
    }
    return std::unique_ptr<Sampler>(std::move(made));
  } catch (const std::exception& problem) {
    return fail(Reason::kInternal,
                std::string("Sampling could not be prepared: ") + problem.what());
  }
}

void LlamaSampler::accept_prompt(std::span<const TokenId> tokens) {
  if (!penalties_ || failed_) return;
  try {
    for (const TokenId token : tokens.last(std::min(tokens.size(), recent_.window()))) {
      if (recent_.add(token)) llama_sampler_accept(penalties_.get(), token);
    }
  } catch (const std::exception&) {
    failed_ = true;
  }
}

Result<SampledToken> LlamaSampler::choose(std::span<float> logits, Candidates& scratch) {
  if (failed_) return fail(Reason::kInternal, "The sampler failed before.");
  if (logits.size() != vocabulary_size_) {
    return fail(Reason::kInternal, "The model has another number of outputs than tokens.");
  }
  const auto best = best_logit(logits);
  if (!best) {
    return fail(Reason::kInternal,
                "The model computed no usable probabilities (NaN or infinite). Its file may be "
                "damaged, or its weights need another KV type or flash attention off.");
  }
  const float highest = logits[*best];
  Result<TokenId> token = LLAMA_TOKEN_NULL;
  try {
    changes_.clear();
    token = choose_changed(logits, *best, scratch);
    undo_changes(logits);
    if (!token) return fail(token.error());
    if (auto accepted = accept(*token); !accepted) return fail(accepted.error());
  } catch (const std::exception& problem) {
    failed_ = true;
    undo_changes(logits);
    return fail(Reason::kInternal, std::string("The sampler failed: ") + problem.what());
  }
  SampledToken chosen;
  chosen.token = *token;
  if (top_logprobs_) add_logprobs(logits, highest, chosen);
  return chosen;
}

// --- what changes single outputs

void LlamaSampler::change(std::span<float> logits, TokenId token, float value) {
  auto& logit = logits[static_cast<std::size_t>(token)];
  if (logit == value) return;
  changes_.emplace_back(token, logit);
  logit = value;
}

void LlamaSampler::undo_changes(std::span<float> logits) {
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    logits[static_cast<std::size_t>(change->first)] = change->second;
  }
  changes_.clear();
}

void LlamaSampler::apply_biases(std::span<float> logits) {
  for (const auto& [token, bias] : biases_) {
    change(logits, token, logits[static_cast<std::size_t>(token)] + bias);
  }
}

void LlamaSampler::apply_penalties(std::span<float> logits, Candidates& scratch) {
  scratch.clear();
  for (const TokenId token : recent_.distinct()) {
    scratch.push_back(llama_token_data{token, logits[static_cast<std::size_t>(token)], 0});
  }
  if (scratch.empty()) return;
  llama_token_data_array array{scratch.data(), scratch.size(), -1, false};
  llama_sampler_apply(penalties_.get(), &array);
  for (std::size_t i = 0; i < array.size; ++i) {
    change(logits, array.data[i].id, array.data[i].logit);
  }
}

Result<TokenId> LlamaSampler::choose_changed(std::span<float> logits, std::size_t best,
                                             Candidates& scratch) {
  apply_biases(logits);
  if (penalties_) apply_penalties(logits, scratch);
  if (!changes_.empty()) {
    const auto now_best = best_logit(logits);
    if (!now_best) return no_token();
    best = *now_best;
  }
  lowered_by_ = logits[best] > kHigh ? logits[best] : 0;
  auto token = pick(logits, best, scratch);
  if (!token || !grammar_ || grammar_->allows(*token)) return token;
  return grammar_->waits() ? pick_unbanned(logits, *token, scratch) : pick_allowed(logits, scratch);
}

// --- the choice

Result<TokenId> LlamaSampler::pick(std::span<float> logits, std::size_t best, Candidates& scratch) {
  if (!choice_) return static_cast<TokenId>(best);
  if (top_k_ > 0 && top_k_ <= kMostSorted) {
    fill_top(logits, top_k_, lowered_by_, selection_, scratch);
    return run_choice(scratch, true);
  }
  fill(logits, lowered_by_, scratch);
  return run_choice(scratch, top_k_ > 0 && keep_best(scratch, top_k_));
}

Result<TokenId> LlamaSampler::pick_allowed(std::span<float> logits, Candidates& scratch) {
  for (int refusals = 0; refusals < kMostRefusals; ++refusals) {
    const bool sorted = fill_allowed(logits, refusals > 0, scratch);
    if (scratch.empty()) return grammar_allows_none();
    auto token = choice_ ? run_choice(scratch, sorted) : Result<TokenId>(scratch.front().id);
    // Among so many the grammar may not have come to this one.
    if (!token || grammar_->allows(*token)) return token;
    change(logits, *token, kBanned);
  }
  return grammar_takes_too_long();
}

Result<TokenId> LlamaSampler::pick_unbanned(std::span<float> logits, TokenId refused,
                                            Candidates& scratch) {
  for (int refusals = 0; refusals < kMostRefusals; ++refusals) {
    change(logits, refused, kBanned);
    const auto best = best_logit(logits);
    if (!best) break;
    auto token = pick(logits, *best, scratch);
    if (!token || grammar_->allows(*token)) return token;
    refused = *token;
  }
  return grammar_allows_none();
}

Result<TokenId> LlamaSampler::run_choice(Candidates& candidates, bool sorted) {
  llama_token_data_array array{candidates.data(), candidates.size(), -1, sorted};
  llama_sampler_apply(choice_.get(), &array);
  if (array.selected < 0 || static_cast<std::size_t>(array.selected) >= array.size) {
    return fail(Reason::kInternal, "The sampler chose no token.");
  }
  return array.data[array.selected].id;
}

// --- its candidates

// All candidates that the grammar may allow.
void LlamaSampler::fill_possible(std::span<const float> logits, Candidates& scratch) {
  const auto possible = grammar_->possible();
  if (!possible) {
    fill(logits, lowered_by_, scratch);
    return;
  }
  scratch.clear();
  for (const TokenId token : *possible) {
    const float logit = logits[static_cast<std::size_t>(token)];
    if (logit != kBanned) scratch.push_back(llama_token_data{token, logit - lowered_by_, 0});
  }
}

// The candidates that the grammar allows, the likeliest first where it returns true. Where only the
// likeliest of them are wanted, it asks about some of the likeliest first, and about all only where
// too few of those are allowed: the grammar takes far longer than anything else here. It may not
// come to all of them; with `likeliest_first` it comes to those first that are likely to be drawn.
bool LlamaSampler::fill_allowed(std::span<const float> logits, bool likeliest_first,
                                Candidates& scratch) {
  const auto remove_refused = [&] {
    grammar_->mark_refused(scratch);
    std::erase_if(scratch, [](const auto& candidate) { return candidate.logit == kBanned; });
  };
  const auto wanted = choice_ ? top_k_ : std::size_t{1};
  constexpr std::array<std::size_t, 2> kSome = {256, 4096};
  for (const auto some : kSome) {
    if (wanted == 0 || wanted >= some || some >= logits.size()) continue;
    fill_top(logits, some, lowered_by_, selection_, scratch);
    remove_refused();
    if (scratch.size() < wanted) continue;
    scratch.resize(wanted);
    return true;
  }
  fill_possible(logits, scratch);
  if (likeliest_first) {
    std::sort(scratch.begin(), scratch.end(),
              [](const auto& left, const auto& right) { return left.logit > right.logit; });
  }
  remove_refused();
  if (wanted == 0) {
    // As libllama has them: the order decides which of them a random number draws.
    std::sort(scratch.begin(), scratch.end(),
              [](const auto& left, const auto& right) { return left.id < right.id; });
    return false;
  }
  return keep_best(scratch, wanted);
}

// --- the rest

void LlamaSampler::add_logprobs(std::span<const float> logits, float highest,
                                SampledToken& chosen) {
  const float sum = log_sum_over(logits, highest);
  chosen.logprob = (logits[static_cast<std::size_t>(chosen.token)] - highest) - sum;
  if (*top_logprobs_ == 0) return;
  top_logits(logits, *top_logprobs_, selection_);
  chosen.top.reserve(selection_.size());
  for (const auto& likely : selection_) {
    chosen.top.push_back(TokenLogprob{likely.token, (likely.logit - highest) - sum});
  }
}

Status LlamaSampler::accept(TokenId token) {
  if (penalties_ && recent_.add(token)) llama_sampler_accept(penalties_.get(), token);
  if (choice_) llama_sampler_accept(choice_.get(), token);
  if (!grammar_) return {};
  auto accepted = grammar_->accept(token);
  failed_ = !accepted;
  return accepted;
}

}  // namespace berth::worker
