#include "worker/engine/load_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace berth::worker {
namespace {

LoadLog log_with_devices(const std::vector<std::string>& devices = {"CUDA0", "Vulkan0"}) {
  return LoadLog([devices](std::string_view name) {
    return std::find(devices.begin(), devices.end(), name) != devices.end();
  });
}

LoadFailure failure_of(const std::vector<std::string>& errors,
                       std::string_view path = "/srv/models/kestrel.gguf") {
  auto log = log_with_devices();
  for (const auto& line : errors) log.add_line(line, true);
  return log.failure(path, "nothing was said");
}

TEST(LoadLog, L15_FaultsOfTheFileArePermanent) {
  const std::vector<std::string> causes = {
      "gguf_init_from_reader: invalid magic characters: 'tjgg', expected 'GGUF'",
      "gguf_init_from_reader: failed to read magic",
      "gguf_init_from_reader: failed to read key-value pairs",
      ("gguf_init_from_reader: this GGUF file is version 4 but this software only supports up to "
       "version 3"),
      ("gguf_init_from_reader: tensor 'token_embd.weight' has incorrect shape for a tensor and may "
       "cause overflow errors"),
      ("llama_model_load: error loading model: error loading model architecture: unknown model "
       "architecture: 'kestrel4'"),
      "llama_model_load: error loading model: unknown model architecture: 'kestrel4'",
      ("llama_model_load: error loading model: tensor 'blk.3.attn_qkv.weight' data is not within "
       "the file bounds, model is corrupted or incomplete"),
      "llama_model_load: error loading model: missing tensor 'blk.0.ffn_down.weight'",
      "llama_model_load: error loading model: tensor 'blk.0.ffn_down.weight' not found",
      ("llama_model_load: error loading model: error loading model vocabulary: unknown "
       "pre-tokenizer type: 'kestrel-bpe'"),
  };
  for (const auto& cause : causes) {
    const auto failure =
        failure_of({cause, "llama_model_load_from_file_impl: failed to load model"});
    EXPECT_EQ(failure.failure_class, "permanent") << cause;
    EXPECT_EQ(failure.reason, cause);
  }
}

TEST(LoadLog, L15_MemoryThatCannotBeHadIsResource) {
  const std::vector<std::string> causes = {
      "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 137438953504",
      ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144817.04 MiB on device 0: "
       "cudaMalloc failed: out of memory"),
      "ggml_vulkan: Device memory allocation of size 4697620480 failed.",
      "llama_model_load: error loading model: unable to allocate Vulkan0 buffer",
      "llama_model_load: error loading model: mmap failed: Cannot allocate memory",
  };
  for (const auto& cause : causes) {
    const auto failure = failure_of({cause, "llama_init_from_model: failed to initialize"});
    EXPECT_EQ(failure.failure_class, "resource") << cause;
    EXPECT_EQ(failure.reason, cause);
  }
}

TEST(LoadLog, L15_UnknownIsUnclassifiedWithTheLineThatSaysMost) {
  const auto failure = failure_of(
      {"gguf_init_from_file: failed to open GGUF file '/srv/models/kestrel.gguf' (Permission "
       "denied)",
       "llama_model_load: error loading model: llama_model_loader: failed to load model from "
       "/srv/models/kestrel.gguf",
       "llama_model_load_from_file_impl: failed to load model"});
  EXPECT_EQ(failure.failure_class, "unclassified");
  EXPECT_EQ(failure.reason,
            "gguf_init_from_file: failed to open GGUF file '<path>' (Permission denied)");
}

TEST(LoadLog, L18_ReasonsHoldNoPath) {
  EXPECT_EQ(
      failure_of({"x: failed to load GGUF split from /srv/models/kestrel-00002-of-00003.gguf"},
                 "/srv/models/kestrel-00001-of-00003.gguf")
          .reason,
      "x: failed to load GGUF split from kestrel-00002-of-00003.gguf");
}

TEST(LoadLog, SaysWhatIsKnownWithoutALine) {
  const auto failure = failure_of({});
  EXPECT_EQ(failure.failure_class, "unclassified");
  EXPECT_EQ(failure.reason, "nothing was said");
  EXPECT_EQ(failure_of({"x: failed to load model"}).reason, "x: failed to load model");
}

TEST(LoadLog, LinesThatAreNoErrorsAreNoCause) {
  auto log = log_with_devices();
  log.add_line("load_tensors: tensor 'x' not found, out of memory", false);
  EXPECT_EQ(log.failure("", "nothing").failure_class, "unclassified");
}

TEST(LoadLog, L6_L15_AProofThatFailsForWantOfMemoryIsResource) {
  const std::string line =
      "ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size 1048576";
  auto log = log_with_devices();
  log.add_line(line, true);
  log.add_line("llama_decode: failed to decode, ret = -2", true);
  const auto failure = failure_within_load(log, "the model could not compute one token: -2");
  EXPECT_EQ(failure.failure_class, "resource");
  EXPECT_EQ(failure.reason, line);
}

TEST(LoadLog, L6_L15_AProofsOwnErrorCountsWhereNoLineHasAClass) {
  auto log = log_with_devices();
  log.add_line("llama_decode: failed to decode, ret = -3", true);
  const auto failure = failure_within_load(log, "the model could not compute one token: -3");
  EXPECT_EQ(failure.failure_class, "unclassified");
  EXPECT_EQ(failure.reason, "the model could not compute one token: -3");
  auto silent = log_with_devices();
  EXPECT_EQ(
      failure_within_load(silent, "could not compute 512 tokens: std::bad_alloc").failure_class,
      "resource");
}

TEST(LoadLog, L16_ReasonsAreOneShortLine) {
  const auto failure = failure_of({"x: out of memory \x1b[31m" + std::string(1000, 'y')});
  EXPECT_LE(failure.reason.size(), 300U);
  EXPECT_THAT(failure.reason, testing::Not(testing::HasSubstr("\x1b")));
}

TEST(LoadLog, SumsMemoryPerDomain) {
  auto log = log_with_devices();
  for (const auto* const line : {
           "load_tensors:   CPU_Mapped model buffer size =     1.50 MiB",
           "load_tensors:   CPU_Mapped model buffer size =     0.50 MiB",
           "load_tensors:        CUDA0 model buffer size =   100.00 MiB",
           "load_tensors:    CUDA_Host model buffer size =     4.00 MiB",
           "llama_context:        CPU  output buffer size =     0.25 MiB",
           "llama_kv_cache:        CPU KV buffer size =     4.00 MiB",
           "llama_kv_cache:        CPU KV buffer size =     2.00 MiB",
           "llama_memory_recurrent:      CUDA0 RS buffer size =     8.00 MiB",
           "sched_reserve:        CPU compute buffer size =    99.00 MiB",
           "sched_reserve:        CPU compute buffer size =     3.75 MiB",
           "sched_reserve:      CUDA0 compute buffer size =    64.00 MiB",
       }) {
    log.add_line(line, false);
  }
  const auto memory = log.memory();
  ASSERT_EQ(memory.size(), 2U);
  constexpr std::uint64_t kMiB = 1048576;
  EXPECT_EQ(memory[0].domain, "host");
  EXPECT_EQ(memory[0].weights_bytes, 6 * kMiB);
  EXPECT_EQ(memory[0].mapped_bytes, 2 * kMiB);
  EXPECT_EQ(memory[0].kv_bytes, 6 * kMiB);
  EXPECT_EQ(memory[0].working_bytes, 4 * kMiB);  // the later reservation holds
  EXPECT_EQ(memory[1].domain, "CUDA0");
  EXPECT_EQ(memory[1].weights_bytes, 100 * kMiB);
  EXPECT_EQ(memory[1].kv_bytes, 8 * kMiB);
  EXPECT_EQ(memory[1].working_bytes, 64 * kMiB);
}

// As libllama 0.7.0 says it of a model with two of its five layers on a device.
TEST(LoadLog, DevicesHoldWhatIsInTheirBuffersAndTheHostTheRest) {
  auto log = log_with_devices();
  for (const auto* const line : {
           "load_tensors: offloading output layer to GPU",
           "load_tensors: offloading 2 repeating layers to GPU",
           "load_tensors: offloaded 3/5 layers to GPU",
           "load_tensors:   CPU_Mapped model buffer size =     1.75 MiB",
           "load_tensors:      Vulkan0 model buffer size =     1.25 MiB",
           "llama_context: Vulkan_Host  output buffer size =     0.25 MiB",
           "llama_kv_cache:        CPU KV buffer size =     1.00 MiB",
           "llama_kv_cache:    Vulkan0 KV buffer size =     1.00 MiB",
           "sched_reserve:    Vulkan0 compute buffer size =    10.50 MiB",
           "sched_reserve: Vulkan_Host compute buffer size =     2.00 MiB",
           "llama_adapter_lora_init_impl:    Vulkan0 LoRA buffer size =     0.50 MiB",
       }) {
    log.add_line(line, false);
  }
  EXPECT_EQ(log.device_layers(), 3U);
  EXPECT_EQ(log.layers(), 5U);
  const auto memory = log.memory();
  ASSERT_EQ(memory.size(), 2U);
  constexpr std::uint64_t kKiB = 1024;
  EXPECT_EQ(memory[0].weights_bytes, 1792 * kKiB);
  EXPECT_EQ(memory[0].kv_bytes, 1024 * kKiB);
  EXPECT_EQ(memory[0].working_bytes, 2304 * kKiB);
  EXPECT_EQ(memory[1].domain, "Vulkan0");
  EXPECT_EQ(memory[1].weights_bytes, 1792 * kKiB);
  EXPECT_EQ(memory[1].kv_bytes, 1024 * kKiB);
  EXPECT_EQ(memory[1].working_bytes, 10752 * kKiB);
}

TEST(LoadLog, LayersAreOnlyTakenFromAWholeStatement) {
  auto log = log_with_devices();
  for (const auto* const line : {"offloaded", "x: offloaded x/5 layers", "x: offloaded 5",
                                 "x: offloaded 5/", "x: offloaded 6/5 layers to GPU"}) {
    log.add_line(line, false);
  }
  EXPECT_EQ(log.layers(), 0U);
  EXPECT_EQ(log.device_layers(), 0U);
}

TEST(LoadLog, AddsWhatASecondModelTakes) {
  std::vector<MemoryUse> sum = {{"host", 1, 2, 3}};
  add_memory(sum, {{"host", 10, 20, 30}, {"Vulkan0", 4, 5, 6}});
  ASSERT_EQ(sum.size(), 2U);
  EXPECT_EQ(sum[0].weights_bytes, 11U);
  EXPECT_EQ(sum[0].kv_bytes, 22U);
  EXPECT_EQ(sum[0].working_bytes, 33U);
  EXPECT_EQ(sum[1].domain, "Vulkan0");
  EXPECT_EQ(sum[1].working_bytes, 6U);
}

TEST(LoadLog, IgnoresWhatOnlyLooksLikeASize) {
  auto log = log_with_devices();
  for (const auto* const line :
       {" buffer size =", "buffer size = 1 MiB", "x: model buffer size = lots",
        "x: CPU model buffer size = 5", "x: CPU model buffer size = -5 MiB",
        "x: CPU model buffer size = nan MiB", "x: CPU model buffer size = 1e300 MiB",
        "x: model buffer size = 5.00 MiB"}) {
    log.add_line(line, false);
  }
  const auto memory = log.memory();
  ASSERT_EQ(memory.size(), 1U);
  EXPECT_EQ(memory[0].weights_bytes + memory[0].kv_bytes + memory[0].working_bytes, 0U);
}

}  // namespace
}  // namespace berth::worker
