#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "llama.h"
#include "worker/engine/engine.h"

namespace berth::worker {

// What every context of ours has in common, be it the model's or its draft model's.

// Asked within a batch whether to give up; may be empty. Outlives the context.
using AbortCheck = std::function<bool()>;

// libllama's parameters with what the settings say about KV type and attention, one unified pool
// (M4), and `threads`. The caller sets the sizes.
llama_context_params context_parameters(const EngineSettings& settings, std::uint32_t threads,
                                        AbortCheck& abort_check);

// Tokens that libllama computes at once; more costs memory and gains nothing on processors.
inline constexpr std::uint32_t kMicroBatch = 512;

// A batch under construction: owns libllama's arrays, for a fixed number of tokens.
class LlamaBatch {
 public:
  explicit LlamaBatch(std::uint32_t capacity);
  LlamaBatch(const LlamaBatch&) = delete;
  LlamaBatch& operator=(const LlamaBatch&) = delete;
  ~LlamaBatch();

  void clear() { batch_.n_tokens = 0; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(batch_.n_tokens); }
  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  // Only where size() < capacity().
  void add(const BatchItem& item);
  // Computes it and waits for the result, with the encoder where the model has no memory. On
  // kFailed, `error` says why, and `no_cells` whether it was for want of them.
  DecodeOutcome compute(llama_context* context, std::string& error, bool* no_cells = nullptr) const;

 private:
  llama_batch batch_;
  std::uint32_t capacity_;
};

// Keeps the first `tokens` positions of a sequence and forgets the rest. Returns `tokens`, or 0
// where the memory cannot be cut there; the sequence is empty then.
std::uint32_t keep_prefix(llama_context* context, SequenceId sequence, std::uint32_t tokens);

// Whether the model's memory holds one state for all tokens (recurrent and hybrid models), which
// cannot be cut.
bool has_state(const llama_model* model);

}  // namespace berth::worker
