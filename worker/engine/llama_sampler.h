#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/result.h"
#include "worker/engine/candidates.h"
#include "worker/engine/dry_cache.h"
#include "worker/engine/engine.h"
#include "worker/engine/grammar_gate.h"
#include "worker/engine/llama_handles.h"
#include "worker/engine/recent_tokens.h"
#include "worker/engine/top_logits.h"

namespace berth::worker {

// Chooses the tokens of one generation with libllama's samplers. In this order: biases, penalties,
// DRY, the cuts (top-n-sigma, top-k, typical, top-p, min-p, XTC) and the temperature, or the
// temperature and mirostat, then the draw; llama.cpp's default order.
//
// What it gives libllama is the same to it, but less: to the penalties only tokens that can be
// penalised, to the cuts behind top-k only those top-k. Of equals at the end of the top-k those
// with the lower ids are kept.
//
// A grammar is asked only about the token that was drawn. Only where it refuses that, its allowed
// tokens are looked for, and among them is drawn once more (as llama-server does). So a refused
// draw takes one random number more than another, and the same seed gives the same text still.
class LlamaSampler final : public Sampler {
 public:
  static constexpr std::uint32_t kDefaultContext = 32768;

  // `context`: most tokens of a sequence, a bound for what penalties look back at, as their memory
  // is taken at once. `starts` and `dry`: of this vocabulary, make grammars and DRY faster;
  // `starts` lives longer than the sampler. Errors: kInvalidArgument where a setting is out of
  // range or the grammar cannot be used; kInternal where memory is short.
  static Result<std::unique_ptr<Sampler>> make(const llama_vocab* vocabulary,
                                               const SamplingSettings& settings,
                                               std::uint32_t context = kDefaultContext,
                                               const TokenStarts* starts = nullptr,
                                               DryCache* dry = nullptr);

  void accept_prompt(std::span<const TokenId> tokens) override;

  // Chooses from the model's outputs, one per token of the vocabulary; they are changed meanwhile,
  // and as before at the end. `scratch` is kept between calls. Errors: as Engine::sample().
  Result<SampledToken> choose(std::span<float> logits, Candidates& scratch);

 private:
  LlamaSampler() : recent_(0, 0) {}

  Result<TokenId> choose_changed(std::span<float> logits, std::size_t best, Candidates& scratch);
  void change(std::span<float> logits, TokenId token, float value);
  void apply_biases(std::span<float> logits);
  void apply_penalties(std::span<float> logits, Candidates& scratch);
  void undo_changes(std::span<float> logits);

  Result<TokenId> pick(std::span<float> logits, std::size_t best, Candidates& scratch);
  Result<TokenId> pick_allowed(std::span<float> logits, Candidates& scratch);
  Result<TokenId> pick_unbanned(std::span<float> logits, TokenId refused, Candidates& scratch);
  Result<TokenId> run_choice(Candidates& candidates, bool sorted);
  void fill_possible(std::span<const float> logits, Candidates& scratch);
  bool fill_allowed(std::span<const float> logits, bool likeliest_first, Candidates& scratch);
  void add_logprobs(std::span<const float> logits, float highest, SampledToken& chosen);
  Status accept(TokenId token);

  std::size_t vocabulary_size_ = 0;
  std::vector<std::pair<TokenId, float>> biases_;
  RecentTokens recent_;
  SamplerPointer penalties_;              // null: none
  SamplerPointer choice_;                 // null: the likeliest
  std::size_t top_k_ = 0;                 // what choice_ is given at most; 0: all
  std::unique_ptr<GrammarGate> grammar_;  // null: none
  std::optional<std::uint32_t> top_logprobs_;
  bool failed_ = false;  // libllama threw: its samplers' state is unknown

  std::vector<std::pair<TokenId, float>> changes_;  // what outputs were before
  float lowered_by_ = 0;                            // what candidates have less than the outputs
  std::vector<ScoredToken> selection_;
};

}  // namespace berth::worker
