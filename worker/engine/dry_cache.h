#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "worker/engine/llama_handles.h"

struct llama_vocab;

namespace berth::worker {

// What libllama's DRY sampler is made of.
struct DrySettings {
  float multiplier = 0;
  float base = 1;
  std::int32_t allowed_length = 0;
  std::int32_t last_tokens = 0;
  std::vector<std::string> breakers;

  friend bool operator==(const DrySettings&, const DrySettings&) = default;
};

// The DRY sampler that was made last for a model, as a model to copy: to make one looks for every
// breaker in every token of the vocabulary (20 ms and more with 150,000 tokens), and most requests
// have the same settings. Any thread; no longer than the model. May throw std::bad_alloc.
class DryCache {
 public:
  SamplerPointer make(const llama_vocab* vocabulary, const DrySettings& settings);

 private:
  std::mutex mutex_;
  DrySettings settings_;
  SamplerPointer made_;  // null: none yet
};

SamplerPointer make_dry(const llama_vocab* vocabulary, const DrySettings& settings);

}  // namespace berth::worker
