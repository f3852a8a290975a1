#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/engine/engine.h"

namespace berth::worker {

// Reads libllama's own log lines while a model is being loaded: how much memory it took, and if it
// gave up, why. Lines are the only place where libllama says either. Not thread-safe.
class LoadLog {
 public:
  // `is_device` says whether a buffer's name is a device with memory of its own.
  explicit LoadLog(std::function<bool(std::string_view)> is_device);

  // One whole line without its newline. `is_error`: logged at that level.
  void add_line(std::string_view line, bool is_error);

  // The class and the line that names the cause: the first line of a known class, else the last
  // error that says more than that the load failed, else `fallback`. The model's path is replaced
  // by <path>, and the directory is left out before names of other files in it.
  [[nodiscard]] LoadFailure failure(std::string_view path, std::string_view fallback) const;

  // The sum per domain; "host" first.
  [[nodiscard]] std::vector<MemoryUse> memory() const;

  // Layers on devices, of how many; 0 of 0 where libllama did not speak of any. The output counts
  // as one layer.
  [[nodiscard]] std::uint32_t device_layers() const { return device_layers_; }
  [[nodiscard]] std::uint32_t layers() const { return layers_; }

 private:
  enum class Kind : std::uint8_t { kWeights, kKv, kWorking };
  struct Buffer {
    std::string name;  // as libllama names the buffer type, e.g. "CPU_Mapped"
    std::string what;  // "model", "KV", "compute", …
    std::uint64_t bytes = 0;
  };
  void add_buffer(std::string_view line);
  void add_layers(std::string_view line);
  static Kind kind_of(std::string_view what);

  std::function<bool(std::string_view)> is_device_;
  std::vector<Buffer> buffers_;  // bounded by the number of buffer types
  std::uint32_t device_layers_ = 0;
  std::uint32_t layers_ = 0;
  std::string class_;
  std::string class_line_;
  std::string last_error_;
  std::string last_general_error_;
};

// Why a part of a load failed: the line of a known class that `log` saw meanwhile, or `problem`,
// with its own class where it has one.
LoadFailure failure_within_load(LoadLog& log, std::string_view problem);

// Adds what another load took.
void add_memory(std::vector<MemoryUse>& sum, const std::vector<MemoryUse>& more);

// The class of one line of libllama or ggml about a load: "permanent", "resource", or empty.
std::string_view classify_load_line(std::string_view line);

}  // namespace berth::worker
