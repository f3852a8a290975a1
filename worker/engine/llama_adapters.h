#pragma once

#include <tl/expected.hpp>
#include <vector>

#include "llama.h"
#include "worker/engine/engine.h"
#include "worker/engine/load_log.h"

namespace berth::worker {

// A model's adapters (LoRA), ready to be put on its context. The model owns what libllama loaded.
class LlamaAdapters {
 public:
  // Must come before the model gets a context, whose compute graph has to have room for them. `log`
  // hears libllama. Errors: permanent (resource where memory lacks); names the adapter's file.
  static tl::expected<LlamaAdapters, LoadFailure> load(llama_model* model,
                                                       const EngineSettings& settings,
                                                       const LoadLog& log);

  // Whether libllama takes them.
  bool put_on(llama_context* context);

 private:
  std::vector<llama_adapter_lora*> adapters_;
  std::vector<float> scales_;
};

}  // namespace berth::worker
