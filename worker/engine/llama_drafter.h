#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/engine/llama_context.h"
#include "worker/engine/llama_handles.h"

namespace berth::worker {

// The lowest probability, by the draft model itself, of a token that is proposed; below it the
// model to be helped would refuse too many. It was llama.cpp's default (common/common.h,
// speculative `p_min`) for a long time; llama-server 0.7.0 has 0 with drafts of at most 3 tokens.
inline constexpr float kLeastDraftProbability = 0.75F;

// How a draft model's vocabulary differs from the model's, so that its tokens mean something else;
// nothing where it fits. As in llama.cpp (common/speculative.cpp): the same type, the same tokens
// at start and end, sizes within 128 tokens, the same texts from token 5 on.
std::optional<std::string> vocabulary_difference(const llama_vocab* model,
                                                 const llama_vocab* draft);

// A small model that guesses what the large one will say, with a context of its own: as many cells
// and sequences as the large one's. It remembers what each of its sequences holds, so that a call
// costs what is new, and no more of that than the caller allows. Context thread.
class LlamaDrafter {
 public:
  // Sizes of the large model's context.
  struct Sizes {
    std::uint32_t window = 0;
    std::uint32_t cells = 0;
    std::uint32_t batch = 0;
    std::uint32_t threads = 0;
    std::uint32_t vocabulary = 0;
  };

  // Null: no context could be made; libllama's log says why. `abort_check` outlives it.
  static std::unique_ptr<LlamaDrafter> make(ModelPointer model, const EngineSettings& settings,
                                            const Sizes& sizes, AbortCheck& abort_check);

  // As Engine::draft(); beyond what it was trained for a model with a table of positions proposes
  // nothing. Where something fails nothing more is proposed, and the sequence holds what
  // it held before the batch that failed.
  DraftStep draft(SequenceId sequence, std::span<const TokenId> tokens, DraftLimits limits,
                  std::vector<TokenId>& out);
  // As Engine::forget_draft().
  void forget(SequenceId sequence);
  void set_threads(std::int32_t threads) { llama_set_n_threads(context_.get(), threads, threads); }

 private:
  LlamaDrafter(ModelPointer model, const Sizes& sizes, std::uint32_t sequences);

  // Makes the sequence hold `tokens` with outputs behind the last one, or what it can by reading at
  // most `most_read` of them.
  DraftStep hold(SequenceId sequence, std::span<const TokenId> tokens, std::size_t most_read);
  // Computes `tokens` behind what the sequence holds. Whether it did.
  bool append(SequenceId sequence, std::span<const TokenId> tokens);
  // Computes the batch, which is of that sequence. Whether it did.
  bool compute(SequenceId sequence);
  // The likeliest token behind the last one, if it is likely enough.
  [[nodiscard]] std::optional<TokenId> guess() const;

  ModelPointer model_;
  Sizes sizes_;
  std::uint32_t vocabulary_;
  ContextPointer context_;
  LlamaBatch batch_;
  std::vector<std::vector<TokenId>> held_;  // by sequence; each at most one window
  std::vector<std::uint64_t> used_;         // by sequence: the latest of its calls
  std::uint64_t calls_ = 0;
};

}  // namespace berth::worker
