// Logs that are hard to judge, each as a whole, byte by byte, and cut in two at every place (L12):
// all must give the same verdict. The expected ones follow D1 to D18 of docs/log-verdicts.md.

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/core/log/log_run.h"

namespace berth::core {
namespace {

struct Case {
  const char* name;
  std::string log;
  const char* expected;  // class and carried text; empty: no verdict
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

const std::string kHead = "Traceback (most recent call last):\n";
const std::string kFrame = "  File \"/srv/app/load.py\", line 7, in load\n    go()\n";
const std::string kDuring =
    "\nDuring handling of the above exception, another exception occurred:\n\n";
const std::string kCause =
    "\nThe above exception was the direct cause of the following exception:\n\n";
const std::string kLoad = "llama_model_load: error loading model: ";
const std::string kLong = std::string(1 << 20U, 'x') + "\n";

std::vector<Case> cases() {
  using namespace std::string_literals;
  return {
      {"RankPrefix",
       "[rank0]: " + kHead + "[rank0]:   File \"x.py\", line 1, in f\n[rank0]:     f()\n" +
           "[rank0]: ValueError: bad head size 80\n",
       "permanent ValueError: bad head size 80"},
      {"TwoRanksLineByLine",
       "[rank0]: " + kHead + "[rank1]: " + kHead + "[rank0]:   File \"x.py\"\n" +
           "[rank1]:   File \"x.py\"\n[rank0]: ValueError: a\n[rank1]: ValueError: a\n",
       ""},
      {"UvicornBareLinesBelow",
       "INFO:     Waiting for application startup.\nERROR:    " + kHead + kFrame +
           "ModuleNotFoundError: No module named 'zebra'\n\n" +
           "ERROR:    Application startup failed. Exiting.\n",
       "permanent ModuleNotFoundError: No module named 'zebra'"},
      {"TimestampsThatMove",
       "10:00:00,001 ERROR " + kHead + "10:00:00,002 ERROR   File \"x.py\", line 1\n" +
           "10:00:00,003 ERROR ValueError: x\n",
       ""},
      {"SyntaxErrorWithCaret",
       kHead + kFrame +
           "  File \"y.py\", line 3\n    a ==\n       ^\nSyntaxError: invalid syntax\n",
       ""},
      {"SyntaxErrorWasOnlyTheCause",
       kHead + kFrame + "    a ==\n       ^\nSyntaxError: invalid syntax\n" + kCause + kHead +
           kFrame + "ImportError: cannot import name 'load'\n",
       "permanent ImportError: cannot import name 'load'"},
      {"CaretsUnderFrames", kHead + kFrame + "    ~~^^^^\nValueError: bad\n",
       "permanent ValueError: bad"},
      {"ProgressBarThenHeader",
       "Loading:  10%|#    | 1/10\rLoading: 100%|#####| 10/10\r" + kHead + kFrame +
           "ValueError: bad\n",
       "permanent ValueError: bad"},
      {"GroupWithInnerTraceback",
       "  + Exception Group Traceback (most recent call last):\n  |   File \"x.py\", line 1\n"
       "  | ExceptionGroup: two (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
       "    | Traceback (most recent call last):\n    |   File \"x.py\", line 2\n"
       "    | ValueError: inner\n    +------------------------------------\n",
       ""},
      {"ChainOfThree",
       kHead + kFrame + "ImportError: a\n" + kDuring + kHead + kFrame + "ValueError: b\n" + kCause +
           kHead + kFrame + "RuntimeError: c\n",
       ""},
      {"CarriageReturnsAtEveryEnd",
       "Traceback (most recent call last):\r\n  File \"x.py\", line 1\r\nValueError: bad\r\r\n",
       "permanent ValueError: bad"},
      {"NulBytesInside", kHead + kFrame + "Value\0Error: b\0ad\n"s, "permanent ValueError: bad"},
      {"ColouredName", kHead + kFrame + "\x1b[1;35mValueError\x1b[0m: \x1b[35mbad\x1b[0m\n",
       "permanent ValueError: bad"},
      {"TitleSequenceGluedToTheHeader", "\x1b]0;load\x07" + kHead + kFrame + "ValueError: bad\n",
       "permanent ValueError: bad"},
      {"LongLineResets", kHead + kFrame + kLong + "ValueError: bad\n", ""},
      {"LongLineBefore", kLong + kHead + kFrame + "ValueError: bad\n", "permanent ValueError: bad"},
      {"LongLineOfBytesThatVanish",
       kHead + kFrame + std::string(70'000, '\0') + "ValueError: bad\n", ""},
      {"UnterminatedEnd", kHead + kFrame + "ValueError: bad", ""},
      {"TorchOutOfMemory", kHead + kFrame + "torch.AcceleratorError: CUDA error: out of memory\n",
       "resource torch.AcceleratorError: CUDA error: out of memory"},
      {"HeldLineChainsOnToASurvivable",
       kHead + kFrame + "ValueError: bad\n\n" + kDuring + kHead + kFrame + "KeyError: 'x'\n", ""},
      {"LlamaTensorCount",
       kLoad + "done_getting_tensors: wrong number of tensors; expected 147, got 146\n" +
           "llama_model_load_from_file_impl: failed to load model\n",
       "permanent llama_model_load: error loading model: done_getting_tensors: wrong number of "
       "tensors; expected 147, got 146"},
      {"LlamaKeyMissing",
       kLoad + "error loading model hyperparameters: key not found in model: llama.block_count\n",
       "permanent llama_model_load: error loading model: error loading model hyperparameters: key "
       "not found in model: llama.block_count"},
      {"LlamaCorruptedCount", kLoad + "corrupted model: 147 tensors expected but 12 found\n",
       "permanent llama_model_load: error loading model: corrupted model: 147 tensors expected but "
       "12 found"},
      {"LlamaMmapWithoutMemory", kLoad + "mmap failed: Cannot allocate memory\n",
       "resource llama_model_load: error loading model: mmap failed: Cannot allocate memory"},
      {"LlamaFileIsNotThere",
       "gguf_init_from_file: failed to open GGUF file '/m/x.gguf' (No such file or directory)\n" +
           kLoad + "failed to open /m/x.gguf: No such file or directory\n",
       ""},
      {"LlamaOnlyThatItFailed", "llama_model_load_from_file_impl: failed to load model\n", ""},
      {"GgufTensorType",
       "gguf_init_from_reader: tensor 'a' has invalid ggml type 99. should be in [0, 41)\n",
       "permanent gguf_init_from_reader: tensor 'a' has invalid ggml type 99. should be in [0, "
       "41)"},
      {"GgufVersionOfTheFuture",
       "gguf_init_from_reader: this GGUF file is version 9 but this software only supports up to "
       "version 3\n",
       "permanent gguf_init_from_reader: this GGUF file is version 9 but this software only "
       "supports up to version 3"},
      {"GgufNameTooLong", "gguf_init_from_reader: tensor name 0 is too long: 99 >= 64\n",
       "permanent gguf_init_from_reader: tensor name 0 is too long: 99 >= 64"},
      {"GgufCountOutOfRange",
       "gguf_init_from_reader: number of tensors is 99 but must be in [0, 5]\n",
       "permanent gguf_init_from_reader: number of tensors is 99 but must be in [0, 5]"},
      {"LlamaTensorData", kLoad + "found tensors with invalid data\n",
       "permanent llama_model_load: error loading model: found tensors with invalid data"},
      {"LlamaArrayForScalar", kLoad + "expected scalar, found array for key: llama.block_count\n",
       "permanent llama_model_load: error loading model: expected scalar, found array for key: "
       "llama.block_count"},
      {"LlamaSecondPart",
       kLoad + "illegal split file idx: 1 (file: x.gguf), model must be loaded with the first "
               "split\n",
       "permanent llama_model_load: error loading model: illegal split file idx: 1 (file: x.gguf), "
       "model must be loaded with the first split"},
      {"CudaAllocation",
       "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: "
       "cudaMalloc failed: out of memory\nalloc_tensor_range: failed to allocate CUDA0 buffer of "
       "size 9437184000\nllama_model_load_from_file_impl: failed to load model\n",
       "resource ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: "
       "cudaMalloc failed: out of memory"},
      {"VulkanAllocation",
       "ggml_vulkan: Device memory allocation of size 1073741824 failed.\nggml_vulkan: "
       "vk::Device::allocateMemory: ErrorOutOfDeviceMemory\n",
       "resource ggml_vulkan: Device memory allocation of size 1073741824 failed."},
      {"CudaPinnedHasAFallback",
       "ggml_cuda_host_malloc: failed to allocate 512.00 MiB of pinned memory: out of memory\n",
       ""},
      {"LinkerLibrary",
       "./serve: error while loading shared libraries: libcudart.so.12: cannot open shared object "
       "file: No such file or directory\n",
       "crash <path> error while loading shared libraries: libcudart.so.12: cannot open shared "
       "object file: No such file or directory"},
      {"LinkerSymbol", "serve: symbol lookup error: serve: undefined symbol: ggml_init\n",
       "crash serve: symbol lookup error: serve: undefined symbol: ggml_init"},
      {"LinkerVersion",
       "/opt/a/serve: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required "
       "by /opt/a/serve)\n",
       "crash <path>"},
      {"DlopenThatIsSurvived",
       "warn: libcuda.so.1: cannot open shared object file: No such file or directory\n", ""},
      {"LeakSanitizer", "==77==ERROR: LeakSanitizer: detected memory leaks\n",
       "crash ==77==ERROR: LeakSanitizer: detected memory leaks"},
      {"ThreadSanitizerWarns", "WARNING: ThreadSanitizer: data race (pid=9)\n", ""},
      {"RustPanic",
       "thread 'main' panicked at src/main.rs:4:5:\ncalled `Option::unwrap()` on a `None` value\n",
       ""},
      {"Killed", "Killed\n./run.sh: line 3:  4242 Killed                  serve\n", ""},
      {"BadAlloc",
       "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  "
       "std::bad_alloc\nAborted (core dumped)\n",
       "resource terminate called after throwing an instance of 'std::bad_alloc'"},
      {"BadAllocAlone", "what():  std::bad_alloc\nstd::bad_alloc\n", ""},
      {"AssertionBehindPlace", "/src/ggml/src/ggml.c:4000: GGML_ASSERT(ctx != NULL) failed\n",
       "crash <path> GGML_ASSERT(ctx != NULL) failed"},
      {"QuotedInJson", "{\"message\": \"GGML_ASSERT(x) failed\"}\n", ""},
  };
}

class HardCase : public ::testing::TestWithParam<Case> {
 protected:
  static std::string words(const test::LogRun& run) {
    const auto& verdict = run.verdict();
    if (!verdict) return {};
    return std::string(failure_class_name(verdict->failure_class)) + " " + verdict->reason;
  }
};

TEST_P(HardCase, L13_L15_GivesItsVerdictHoweverItComes) {
  const std::string& log = GetParam().log;
  EXPECT_EQ(test::said(log), GetParam().expected);

  test::LogRun bytes;
  for (const char& byte : log) bytes.write({&byte, 1});
  bytes.end();
  EXPECT_EQ(words(bytes), GetParam().expected) << "byte by byte";

  const std::size_t step = log.size() > 4096 ? log.size() / 64 : 1;
  for (std::size_t at = 0; at < log.size(); at += step) {
    test::LogRun two;
    two.write(std::string_view(log).substr(0, at));
    two.write(std::string_view(log).substr(at));
    two.end();
    ASSERT_EQ(words(two), GetParam().expected) << "cut at " << at;
  }
}

// What was never cut in the middle of a line may be quiet at any line's end but within a chain.
TEST_P(HardCase, L15_SaysNothingOnceItIsOver) {
  test::LogRun run;
  run.write(GetParam().log);
  run.end();
  run.write(kHead + kFrame + "ValueError: later\n");
  run.end();
  EXPECT_LE(run.verdicts, 1);
}

INSTANTIATE_TEST_SUITE_P(Logs, HardCase, ::testing::ValuesIn(cases()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace berth::core
