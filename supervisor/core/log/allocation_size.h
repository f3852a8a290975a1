#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace berth::core {

// An allocation that a load asked for and did not get.
struct RefusedAllocation {
  std::string buffer;  // as libllama names it: "CUDA0", "CUDA_Host"; empty: the processor's
  std::uint64_t bytes = 0;

  bool operator==(const RefusedAllocation&) const = default;
};

// What libllama says of the first allocation that was refused, in lines of its log, the oldest
// first. Absent: none of them names a size, or it is not said whose memory it was.
// Source of the lines: ggml/src/ggml-backend.cpp, ggml-alloc.c, ggml-cuda/ggml-cuda.cu,
// ggml-vulkan/ggml-vulkan.cpp, src/llama-model.cpp.
std::optional<RefusedAllocation> refused_allocation(std::span<const std::string> lines);

}  // namespace berth::core
