#include "worker/engine/dry_cache.h"

#include <utility>

#include "llama.h"

namespace berth::worker {

SamplerPointer make_dry(const llama_vocab* vocabulary, const DrySettings& settings) {
  std::vector<const char*> breakers;
  for (const auto& text : settings.breakers) breakers.push_back(text.c_str());
  return SamplerPointer(llama_sampler_init_dry(vocabulary, settings.multiplier, settings.base,
                                               settings.allowed_length, settings.last_tokens,
                                               breakers.data(), breakers.size()));
}

SamplerPointer DryCache::make(const llama_vocab* vocabulary, const DrySettings& settings) {
  {
    const std::lock_guard lock(mutex_);
    if (made_ && settings_ == settings) return SamplerPointer(llama_sampler_clone(made_.get()));
  }
  auto made = make_dry(vocabulary, settings);
  SamplerPointer copy(llama_sampler_clone(made.get()));
  auto kept = settings;
  const std::lock_guard lock(mutex_);
  settings_ = std::move(kept);
  made_ = std::move(made);
  return copy;
}

}  // namespace berth::worker
