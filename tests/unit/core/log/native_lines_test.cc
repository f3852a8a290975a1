#include "supervisor/core/log/native_lines.h"

#include <gtest/gtest.h>

#include "tests/unit/core/log/log_run.h"

namespace berth::core {
namespace {

using test::kPause;
using test::LogRun;
using test::said;
using namespace std::chrono_literals;

void expect_all(const char* failure_class, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_EQ(said(line + "\n").substr(0, std::string(failure_class).size()), failure_class)
        << line;
    EXPECT_NE(said("[INFO] " + line + "\n"), "") << "behind a prefix: " << line;
    EXPECT_EQ(said("  " + line + "\n"), "") << "indented: " << line;
    EXPECT_EQ(said("He wrote: " + line + "\n"), "") << "inside a line: " << line;
    EXPECT_EQ(said("{\"msg\":\"" + line + "\"}\n"), "") << "in JSON: " << line;
  }
}

void expect_none(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) EXPECT_EQ(said(line + "\n"), "") << line;
}

TEST(NativeLines, L15_WhyBerthWorkerDoesNotBeginIsAFaultOfItsLaunch) {
  expect_all("launch",
             {"berth-worker: cannot start: There is no option \"--sequence\" (see --help).",
              "berth-worker: cannot start: Another process listens on /run/x.sock."});
  expect_none({"berth-worker: parts of the sandbox are not there: landlock.",
               "berth-worker: cannot start"});
}

TEST(NativeLines, L15_WhatBerthWorkerLacksForNowIsAResource) {
  expect_all("resource", {"berth-worker: cannot start now: socket: Too many open files"});
}

TEST(NativeLines, L15_FaultsOfTheModelFileArePermanent) {
  const std::string load = "llama_model_load: error loading model: ";
  expect_all(
      "permanent",
      {
          load + "unknown model architecture: 'kestrel4'",
          load + "error loading model architecture: unknown model architecture: 'kestrel4'",
          load + "error loading model vocabulary: unknown pre-tokenizer type: 'k'",
          load + "error loading model vocabulary: invalid character",
          load + "error loading model vocabulary: cannot find tokenizer merges in model file",
          load + "error loading model hyperparameters: key not found in model: k.context_length",
          load + "error loading model hyperparameters: key k.head_count has wrong type u8 but "
                 "expected "
                 "type u32",
          load + "unknown tokenizer: 'k'",
          load + "missing tensor 'blk.40.ssm_conv1d.weight'",
          load + "create_tensor: tensor 'token_embd.weight' not found",
          load + "check_tensor_dims: tensor 'output.weight' not found",
          load + "done_getting_tensors: wrong number of tensors; expected 149, got 147",
          load + "create_tensor: tensor 'b' has wrong shape; expected 8192, 8192, got 8192, 1024",
          load + "invalid model: tensor 'b' is duplicated",
          load + "tensor 'b' has invalid data",
          load + "corrupted model: 3 tensors expected but 2 found",
          load + "tensor 'b' data is not within the file bounds, model is corrupted or incomplete",
          load + "unexpectedly reached end of file",
          load + "unknown type 99",
          "llama_model_load_from_file: error loading model: unknown model architecture: 'k'",
          "error loading model: llama.cpp: tensor 'layers.7.attention_norm.weight' is missing from "
          "model",
          "error loading model: unknown (magic, version) combination: 46554747, 1; is this really "
          "a "
          "GGML file?",
          "error loading model: this format is no longer supported",
          "done_getting_tensors: wrong number of tensors; expected 3, got 2",
          "error loading model: unrecognized tensor type 14",
          "llama_model_load: invalid model file 'k.bin' (bad magic)",
          "llama_model_load: tensor 'b' has wrong size in model file",
          "gguf_init_from_file_impl: invalid magic characters: 'tjgg', expected 'GGUF'",
          "gguf_init_from_file: invalid magic characters 'tjgg'",
          "gguf_init_from_file_impl: failed to read magic",
          "gguf_init_from_file_impl: failed to read key-value pairs",
          "gguf_init_from_file_impl: failed to read tensor info",
          "gguf_init_from_file_impl: bad GGUF version: 0",
          "gguf_init_from_file_impl: GGUFv1 is no longer supported. please use a more up-to-date "
          "version",
          "gguf_init_from_file_impl: failed to load model: this GGUF file version 50331648 is "
          "extremely "
          "large, is there a mismatch between the host and model endianness?",
          "gguf_init_from_file_impl: key 'general.alignment' has invalid GGUF type 13",
          "gguf_init_from_file_impl: tensor 'b' has invalid ggml type 99. should be in [0, 41)",
          "gguf_init_from_file_impl: tensor 'b' has invalid number of dimensions: 9 > 4",
          "gguf_init_from_file_impl: encountered length_error while reading value for key 'k'",
          "gguf_init_from_file_impl: failed to seek to beginning of data section",
          "gguf_read_string: string length 99 exceeds remaining file size 3 bytes",
      });
}

TEST(NativeLines, L15_WhatTheMachineIsToBlameForGivesNoVerdict) {
  const std::string load = "llama_model_load: error loading model: ";
  expect_none({
      load + "llama_model_loader: failed to load model from /srv/unknown model architecture/k.gguf",
      load + "failed to open /srv/k.gguf: No such file or directory",
      load + "read error: Input/output error",
      load + "mmap failed: Operation not permitted",
      load + "failed to read /srv/k.gguf: Permission denied",
      load + "vector::_M_range_check",
      load + "unable to load model",
      load + "insufficient VRAM",
      load,
      "gguf_init_from_file: failed to open GGUF file 'k.gguf' (No such file or directory)",
      "gguf_init_from_file_impl: failed to read header (Input/output error)",
      "gguf_write_to_file: failed to open file 'k.gguf' for writing GGUF data",
      "llama_model_load_from_file_impl: failed to load model",
      "llama_load_model_from_file: exception loading model",
      "common_init_from_params: failed to load model 'k.gguf'",
      "main: exiting due to model loading error",
  });
}

TEST(NativeLines, L15_FailedAllocationsAreResource) {
  expect_all(
      "resource",
      {
          "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5.00 MiB on device 0: cudaMalloc "
          "failed: out of memory",
          "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory",
          "alloc_tensor_range: failed to allocate CUDA0 buffer of size 5",
          "ggml_gallocr_reserve_n_impl: failed to allocate RPC2[192.168.100.2:50052] buffer of "
          "size 5",
          "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 5",
          "ggml_metal_buffer_init: error: failed to allocate buffer, size = 5.00 MiB",
          "ggml_vulkan: Device memory allocation of size 5 failed.",
          "ggml_vulkan: Requested buffer size exceeds device memory allocation limit: "
          "ErrorOutOfDeviceMemory",
          "graph_reserve: failed to allocate compute buffers",
          "llama_kv_cache_init: failed to allocate buffer for kv cache",
          "llama_init_from_model: failed to initialize the context: failed to allocate buffer for "
          "kv "
          "cache",
          "llama_init_from_model: failed to initialize the context: failed to allocate compute pp "
          "buffers",
          "ggml_aligned_malloc: insufficient memory (attempted to allocate 5.00 MB)",
          "ggml_calloc: failed to allocate   5.00 MB",
          "output_reserve: failed to allocate output buffer of size 5.00 MiB",
          "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
          "llama_model_load: error loading model: mmap failed: Cannot allocate memory",
          "llama_model_load: error loading model: failed to allocate buffer",
          "error loading model: unable to allocate backend buffer",
          "llama_model_load: error loading model: vk::Device::allocateMemory: "
          "ErrorOutOfDeviceMemory",
          "CUDA error: out of memory",
          "ROCm error: out of memory",
          "CUDA error 2 at ggml-cuda.cu:7233: out of memory",
          "terminate called after throwing an instance of 'std::bad_alloc'",
          "terminate called after throwing an instance of 'vk::OutOfDeviceMemoryError'",
          "terminate called after throwing an instance of 'vk::OutOfHostMemoryError'",
      });
}

TEST(NativeLines, L15_WhatHasAFallbackIsNoFailedAllocation) {
  expect_none({
      "WARNING: failed to allocate 5.00 MB of pinned memory",
      "ggml_cuda_host_malloc: failed to allocate 5.00 MiB of pinned memory: out of memory",
      "ggml_vulkan: Failed to allocate pinned memory (vk::OutOfHostMemory)",
      "warning: failed to mlock 827228160-byte buffer (after previously locking 0 bytes): Cannot "
      "allocate memory",
      "load_all_data: failed to allocate host buffer for async uploads for device CUDA0",
      "sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism",
      "alloc: failed to allocate CUDA0 buffer of size 5, retrying",
      "note: failed to allocate CUDA0 buffer of size 5",
      "kestrel: failed to allocate a name",
  });
}

TEST(NativeLines, L15_TheFirstLineOfABurstIsCarried) {
  const std::string burst =
      "0.1.2 E ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 5\n"
      "0.1.3 E graph_reserve: failed to ALLOCATE compute buffers\n";
  EXPECT_EQ(said(burst),
            "resource ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 5");
  LogRun run;
  run.write(burst);
  EXPECT_EQ(run.verdict(), std::nullopt) << "it is held";
  EXPECT_EQ(run.parser().hold_until(), run.now() + 100ms);
  run.write("\n");
  EXPECT_EQ(run.verdict(), std::nullopt) << "a blank line continues the hold";
  run.write("llama_model_load_from_file_impl: failed to load model\n");
  ASSERT_TRUE(run.verdict().has_value());
  EXPECT_EQ(run.verdict()->line, 1U);
  LogRun quiet;
  quiet.write(burst);
  quiet.wait(100ms);
  EXPECT_TRUE(quiet.verdict().has_value());
}

TEST(NativeLines, L15_ARetryWithdrawsTheBurst) {
  const std::string burst =
      "alloc_tensor_range: failed to allocate CUDA0 buffer of size 5\n"
      "graph_reserve: failed to allocate compute buffers\n"
      "\n";
  const std::string retry =
      "sched_reserve: compute buffer allocation failed, Retrying without pipeline parallelism\n";
  EXPECT_EQ(said(burst + retry), "");
  EXPECT_EQ(said(burst + retry + "srv  load_model: initializing\n"), "");
  EXPECT_EQ(said(burst + retry + "llama_context: done\n" + burst),
            "resource alloc_tensor_range: failed to allocate CUDA0 buffer of size 5")
      << "the second time counts";
  EXPECT_NE(said(burst + "retrying with less\n"), "") << "not a line of the burst";
  EXPECT_NE(said(burst + "main: hello\n" + retry), "") << "too late";
  LogRun run;
  run.write(burst);
  run.wait(kPause);
  EXPECT_TRUE(run.verdict().has_value()) << "too late, too";
}

TEST(NativeLines, L15_AbortsAreCrashes) {
  expect_all(
      "crash",
      {
          "terminate called after throwing an instance of 'std::runtime_error'",
          "terminate called after throwing an instance of 'std::bad_array_new_length'",
          "terminate called without an active exception",
          "terminate called recursively",
          "GGML_ASSERT(ne00 % 4 == 0) failed",
          "GGML_ASSERT: ggml.c:3221: ne00 % 4 == 0",
          "ggml.c:3221: GGML_ASSERT(ne00 % 4 == 0) failed",
          "CUDA error: no kernel image is available for execution on the device",
          "CUDA error 209 at ggml-cuda.cu:6951: no kernel image is available",
          "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x0",
          "==1==ERROR: LeakSanitizer: detected memory leaks",
          "==1==ERROR: UndefinedBehaviorSanitizer: SEGV on unknown address",
          "==1==ERROR: HWAddressSanitizer: tag-mismatch on address 0x0",
          "free(): invalid pointer",
          "free(): double free detected in tcache 2",
          "malloc(): corrupted top size",
          "malloc(): unaligned tcache chunk detected",
          "munmap_chunk(): invalid pointer",
          "realloc(): invalid next size",
          "double free or corruption (!prev)",
          "corrupted size vs. prev_size",
          "corrupted double-linked list",
          "*** stack smashing detected ***: terminated",
          "*** buffer overflow detected ***: terminated",
          "Fatal glibc error: malloc.c:2593 (sysmalloc): assertion failed: x",
          "server: ggml.c:10: ggml_new: Assertion `ctx != NULL' failed.",
          "server: a.cc:10: virtual void ns::A::f(int): Assertion `x' failed.",
          "stl_vector.h:1123: std::vector<int>::operator[](size_type): Assertion '__n < size()' "
          "failed.",
          "Inconsistency detected by ld.so: dl-lookup.c: 111: check_match: Assertion failed!",
          "Fatal Python error: Segmentation fault",
          "Fatal Python error: init_fs_encoding: failed to get the Python codec",
          "Segmentation fault (core dumped)",
          "Segmentation fault",
          "Aborted (core dumped)",
          "Bus error (core dumped)",
          "Illegal instruction (core dumped)",
          "Floating point exception",
          "run.sh: line 3: 4711 Segmentation fault      (core dumped) llama-server -m k",
          "bash: 29057 Segmentation fault      python3 p.py",
          "run.sh: line 12:    71 Aborted                 ./server",
          "server: error while loading shared libraries: libcudart.so.12: cannot open shared "
          "object "
          "file: No such file or directory",
          "server: symbol lookup error: server: undefined symbol: ggml_new",
          "server: relocation error: server: symbol x version y not defined in file z",
      });
  EXPECT_EQ(said("/My Apps/b.c:3: GGML_ASSERT(x) failed\n"), "crash <path> GGML_ASSERT(x) failed");
  EXPECT_EQ(said("/opt/server: /lib/libc.so.6: version `GLIBC_2.38' not found (required by "
                 "/opt/server)\n"),
            "crash <path>");
}

TEST(NativeLines, L15_WhatAProgramSurvivesIsNoCrash) {
  expect_none({
      "WARNING: ThreadSanitizer: data race (pid=1)",
      "==1==WARNING: MemorySanitizer: use-of-uninitialized-value",
      "a.c:3:5: runtime error: signed integer overflow",
      "a.cu:88: CUDA error",
      "CUDA error",
      "a.c:88: fatal error",
      "libfoo.so: cannot open shared object file: No such file or directory",
      "load_backend: failed to load libggml-cuda.so: libcudart.so.12: cannot open shared object "
      "file: No such file or directory",
      "ERROR: ld.so: object 'libx.so' from LD_PRELOAD cannot be preloaded: ignored.",
      "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /a.so)",
      "Segmentation fault handler installed",
      "server: 12 Aborted, 3 done",
      "run.sh: line 3: 4711 Segmentation faults",
      "Aborted by user",
      "GGML_ASSERT is on",
      "Killed",
      "run.sh: line 3: 4711 Killed                  llama-server -m k",
      "Terminated",
      "malloc(3) is used",
      "free() is cheap",
      "goroutine 1 [running]:",
      "thread 'main' panicked at src/main.rs:1:1:",
      "sh: 1: exec: llama-server: not found",
      "*** server is ready ***",
  });
}

TEST(NativeLines, L15_APortThatCannotBeBoundIsACrash) {
  expect_all(
      "crash",
      {
          "srv  llama_server: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
          "main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
          "couldn't bind to server socket: hostname=127.0.0.1 port=8080",
          "bind: Address already in use",
          "bind() failed: Address already in use",
          "Address already in use",
          "Failed to bind to address 0.0.0.0:8000",
          "Cannot bind port 8000",
          "Unable to bind to 127.0.0.1:8000",
          "bind: Permission denied",
          "Port 5001 is already in use.",
      });
  EXPECT_EQ(said("ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', "
                 "8000): address already in use\n"),
            "crash error while attempting to bind on address ('127.0.0.1', 8000): address already "
            "in use");
  expect_none({
      "Port 8001 is already in use, trying port 8002",
      "Port 8001 is already in use, using 8002",
      "failed to bind port 8001, trying 8002",
      "failed to bind thread to core: not supported",
      "bind mounts are used",
      "[ERROR] Connection in use: ('127.0.0.1', 8000)",
      "panic: listen tcp 127.0.0.1:8080: bind: address already in use",
  });
}

// A wrong diagnosis is worse than none: the classes come from known lines only.
TEST(NativeLines, T14_AnUnknownLineIsNeverAGuess) {
  expect_none({
      "llama_model_load: error loading model: something that nobody knows",
      "llama_model_load: the prompt was truncated",
      "model: weights may be truncated or corrupted",
      "fatal error: load failed",
      "exited early",
      "out of memory",
      "gguf: invalid",
      "RuntimeError: x",
  });
}

TEST(NativeLines, L15_BenignLinesThatHoldTheWords) {
  expect_none({
      "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected",
      "llama_model_loader: - kv   1: general.name str = error loading model: unknown model "
      "architecture",
      "load_tensors: tensor 'b' (q5_K) (and 0 others) cannot be used with preferred buffer type",
      "srv    load_model: failed to load model, 'k.gguf'",
      "INFO: tensor 'b' not found, using the other",
      "llama_context: flash_attn is not compatible with Grok - forcing off",
      "gguf_init_from_file_impl: ok",
  });
}

}  // namespace
}  // namespace berth::core
