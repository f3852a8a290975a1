#include "supervisor/core/log/allocation_size.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20U;

std::optional<RefusedAllocation> in(const std::vector<std::string>& lines) {
  return refused_allocation(lines);
}

TEST(RefusedAllocation, L21_WhatLibllamaSays) {
  EXPECT_EQ(in({"ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size "
                "137438953504"}),
            (RefusedAllocation{"", 137438953504}));
  EXPECT_EQ(in({"ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size 1048576"}),
            (RefusedAllocation{"CUDA0", kMiB}));
  EXPECT_EQ(in({"output_reserve: failed to allocate output buffer of size 5.00 MiB"}),
            (RefusedAllocation{"", 5 * kMiB}));
  EXPECT_EQ(in({"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 512.50 MiB on device 1: "
                "cudaMalloc failed: out of memory"}),
            (RefusedAllocation{"CUDA1", 512 * kMiB + kMiB / 2}));
  EXPECT_EQ(in({"ggml_vulkan: Device memory allocation of size 2097152 failed.",
                "ggml_vulkan: ErrorOutOfDeviceMemory",
                "alloc_tensor_range: failed to allocate Vulkan0 buffer of size 2097152"}),
            (RefusedAllocation{"Vulkan0", 2 * kMiB}));
  EXPECT_EQ(in({"ggml_vulkan: Device memory allocation of size 2097152 failed.",
                "llama_model_load: error loading model: unable to allocate Vulkan0 buffer"}),
            (RefusedAllocation{"Vulkan0", 2 * kMiB}));
}

TEST(RefusedAllocation, L21_TheFirstOneCounts) {
  EXPECT_EQ(in({"loaded", "failed to allocate CPU buffer of size 7",
                "failed to allocate CUDA0 buffer of size 9"}),
            (RefusedAllocation{"CPU", 7}));
}

TEST(RefusedAllocation, L21_AnythingElseSaysNothing) {
  for (const char* const line :
       {"", "out of memory", "failed to allocate buffer of size", "failed to allocate",
        "failed to allocate buffer of size -1", "failed to allocate buffer of size nan",
        "failed to allocate buffer of size inf", "failed to allocate buffer of size 1e300 MiB",
        "failed to allocate buffer of size 0", "failed to allocate a b buffer of size 5",
        "x: allocating 5 MiB on device 0", "x: allocating 5 MiB on device x: cudaMalloc failed",
        "x: allocating 5 MiB on device 100: cudaMalloc failed",
        "Device memory allocation of size 5 failed", "unable to allocate CUDA0 buffer"}) {
    EXPECT_FALSE(in({line})) << line;
  }
  EXPECT_FALSE(in({}));
}

}  // namespace
}  // namespace berth::core
