#include "worker/engine/llama_architectures.h"

#include <sys/mman.h>

#include <string_view>

#include "common/fd.h"
#include "gguf.h"
#include "llama.h"
#include "worker/engine/llama_log.h"
#include "worker/engine/load_log.h"

namespace berth::worker {

bool llama_knows_architecture(const std::string& name) {
  LlamaLog::instance().install();
  const UniqueFd file(::memfd_create("architecture", MFD_CLOEXEC));
  if (!file) return true;
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  gguf_context* const header = gguf_init_empty();
  gguf_set_val_str(header, "general.architecture", name.c_str());
  const bool written = gguf_write_to_file(header, path.c_str(), true);
  gguf_free(header);
  if (!written) return true;
  LoadLog log([](std::string_view) { return false; });
  const LogObservation observation(log);
  auto parameters = llama_model_default_params();
  parameters.vocab_only = true;
  if (llama_model* const model = llama_model_load_from_file(path.c_str(), parameters)) {
    llama_model_free(model);
    return true;
  }
  return log.failure(path, "").reason.find("unknown model architecture") == std::string::npos;
}

}  // namespace berth::worker
