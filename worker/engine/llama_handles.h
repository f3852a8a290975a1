#pragma once

#include <memory>

#include "llama.h"

namespace berth::worker {

struct ModelFree {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct ContextFree {
  void operator()(llama_context* context) const { llama_free(context); }
};
struct SamplerFree {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using ModelPointer = std::unique_ptr<llama_model, ModelFree>;
using ContextPointer = std::unique_ptr<llama_context, ContextFree>;
using SamplerPointer = std::unique_ptr<llama_sampler, SamplerFree>;

}  // namespace berth::worker
