#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/engine/dry_cache.h"
#include "worker/engine/engine.h"
#include "worker/engine/llama_adapters.h"
#include "worker/engine/llama_context.h"
#include "worker/engine/llama_drafter.h"
#include "worker/engine/llama_embedder.h"
#include "worker/engine/llama_handles.h"
#include "worker/engine/llama_kind.h"
#include "worker/engine/llama_sampler.h"
#include "worker/engine/llama_vocabulary.h"
#include "worker/engine/token_starts.h"

namespace berth::worker {

// libllama behind the seam: owns the model, its context and its draft model. Made in steps by
// llama_load.cc; only complete when that says so.
class LlamaEngine final : public Engine {
 public:
  LlamaEngine(ModelPointer model, const ModelKind& kind);

  // Whether it has a context now; the reason is in libllama's log.
  bool make_context(const EngineSettings& settings);
  // Whether libllama takes them. After make_context().
  bool put_on(LlamaAdapters adapters);
  // Ditto; `model` is the draft model.
  bool make_drafter(ModelPointer model, const EngineSettings& settings);
  // What the load's log said.
  void set_memory(std::vector<MemoryUse> memory, const EngineSettings& settings);
  void set_layers(std::uint32_t device_layers, std::uint32_t layers);

  [[nodiscard]] const llama_model* model() const { return model_.get(); }

  [[nodiscard]] const EngineFacts& facts() const override { return facts_; }
  [[nodiscard]] Result<std::vector<TokenId>> tokenize(std::string_view text,
                                                      bool add_special) const override;
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_whole(std::string_view text) const override;
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_parts(std::span<const PromptPart> parts,
                                                            bool add_special) const override;
  [[nodiscard]] std::vector<std::string> control_texts() const override;
  [[nodiscard]] std::optional<TokenId> control_token(std::string_view text) const override;
  void append_piece(TokenId token, std::string& out, bool show_control) const override;
  [[nodiscard]] bool ends_generation(TokenId token) const override;
  [[nodiscard]] TokenBytes token_bytes() const override { return vocabulary_.token_bytes(); }
  [[nodiscard]] Result<std::unique_ptr<Sampler>> make_sampler(
      const SamplingSettings& settings) const override;

  std::uint32_t keep_prefix(SequenceId sequence, std::uint32_t tokens) override;
  DecodeOutcome decode(std::span<const BatchItem> batch, std::string& error) override;
  Result<SampledToken> sample(Sampler& sampler, std::size_t index) override;
  DraftStep draft(SequenceId sequence, std::span<const TokenId> tokens, DraftLimits limits,
                  std::vector<TokenId>& out) override;
  void forget_draft(SequenceId sequence) override;
  std::uint32_t copy_prefix(SequenceId from, SequenceId to, std::uint32_t tokens) override;
  DecodeOutcome embed(std::span<const std::vector<TokenId>> inputs,
                      std::vector<std::vector<float>>& out, std::string& error) override;
  void set_threads(std::uint32_t threads) override;
  void set_abort_check(std::function<bool()> check) override { abort_check_ = std::move(check); }
  tl::expected<void, LoadFailure> do_within_load(const std::function<Status()>& work) override;

 private:
  [[nodiscard]] std::uint32_t window_for(const EngineSettings& settings) const;
  bool make_context_once(const EngineSettings& settings);
  void set_context_facts(const EngineSettings& settings, std::uint32_t window,
                         std::uint32_t threads);

  ModelPointer model_;
  ModelKind kind_;
  LlamaVocabulary vocabulary_;
  TokenStarts token_starts_{vocabulary_};
  mutable DryCache dry_cache_;
  AbortCheck abort_check_;
  LlamaAdapters adapters_;
  ContextPointer context_;
  std::optional<LlamaBatch> batch_;
  std::optional<LlamaEmbedder> embedder_;
  std::unique_ptr<LlamaDrafter> drafter_;
  EngineFacts facts_;
  Candidates candidates_;
};

}  // namespace berth::worker
