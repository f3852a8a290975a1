#include "worker/engine/llama_adapters.h"

#include <string>
#include <string_view>

namespace berth::worker {
namespace {

std::string_view file_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

}  // namespace

tl::expected<LlamaAdapters, LoadFailure> LlamaAdapters::load(llama_model* model,
                                                             const EngineSettings& settings,
                                                             const LoadLog& log) {
  LlamaAdapters loaded;
  for (const auto& [path, scale] : settings.adapters) {
    const auto prefix = "adapter " + std::string(file_name(path)) + ": ";
    auto* const adapter = llama_adapter_lora_init(model, path.c_str());
    if (adapter == nullptr) {
      auto failure = log.failure(path, "libllama did not say why it cannot be loaded");
      if (failure.failure_class != "resource") failure.failure_class = "permanent";
      failure.reason = prefix + failure.reason;
      return tl::unexpected(failure);
    }
    if (llama_adapter_get_alora_n_invocation_tokens(adapter) > 0) {
      return tl::unexpected(LoadFailure{
          "permanent", prefix + "it works from certain tokens on (aLoRA), which cannot be served"});
    }
    loaded.adapters_.push_back(adapter);
    loaded.scales_.push_back(scale);
  }
  return loaded;
}

bool LlamaAdapters::put_on(llama_context* context) {
  return adapters_.empty() ||
         llama_set_adapters_lora(context, adapters_.data(), adapters_.size(), scales_.data()) == 0;
}

}  // namespace berth::worker
