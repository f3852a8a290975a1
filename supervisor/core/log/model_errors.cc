// What llama.cpp and gguf say of a model file (D13, D14). The phrases are those of llama.cpp from
// the first GGUF versions on and of the ggml files before them.

#include <algorithm>
#include <array>
#include <cstddef>

#include "supervisor/core/log/ascii.h"
#include "supervisor/core/log/line_cleaner.h"
#include "supervisor/core/log/native_message.h"

namespace berth::core {
namespace {

template <std::size_t size>
bool contains_any(std::string_view text, const std::array<std::string_view, size>& phrases) {
  return std::ranges::any_of(phrases,
                             [text](std::string_view phrase) { return contains(text, phrase); });
}

constexpr std::string_view kLoading = "error loading model: ";

// Loading a part of the model failed: the text behind tells of the file's content.
constexpr std::array<std::string_view, 3> kStages = {
    "error loading model architecture: ",
    "error loading model hyperparameters: ",
    "error loading model vocabulary: ",
};

constexpr std::array<std::string_view, 7> kMemory = {
    "unable to allocate", "failed to allocate",     "Cannot allocate memory", "out of memory",
    "std::bad_alloc",     "ErrorOutOfDeviceMemory", "ErrorOutOfHostMemory",
};

// The file ends too early.
constexpr std::array<std::string_view, 5> kTruncated = {
    "file bounds", "end of file", "remaining file size", "corrupted", "truncated"};

// The cause is the machine: nothing in the provenance would lift it.
constexpr std::array<std::string_view, 24> kMachine = {
    "failed to open",
    "cannot open",
    "No such file",
    "ermission denied",
    "not permitted",
    "nput/output error",
    "No space left",
    "Is a directory",
    "Too many open files",
    "Stale file handle",
    "Bad address",
    "Bad file descriptor",
    "Invalid argument",
    "Resource temporarily unavailable",
    "resource busy",
    "endpoint is not connected",
    "timed out",
    "read error",
    "seek error",
    "ftell error",
    "mmap failed",
    "fread failed",
    // Names a path and no cause.
    "failed to load model from",
    "failed to load GGUF split",
};

constexpr std::array<std::string_view, 50> kFileFaults = {
    // what it is
    "unknown model architecture",
    "unknown architecture",
    "unsupported model",
    "unknown pre-tokenizer",
    "unknown tokenizer",
    "unsupported tokenizer",
    "CLIP cannot be used as main model",
    // not GGUF, or not this one
    "invalid magic",
    "bad magic",
    "wrong magic",
    "unknown magic",
    "(magic, version)",
    "not a GGUF",
    "not GGUF",
    "valid GGUF",
    "bad GGUF version",
    "unsupported GGUF version",
    "GGUF file version",
    "GGUFv1",
    "no longer supported",
    "unsupported version",
    "unsupported format version",
    "unsupported file version",
    // metadata
    "failed to read ",
    "key not found",
    "missing key",
    "duplicate",
    "cannot find tokenizer",
    "has wrong array length",
    "wrong array length",
    "expected scalar, found array",
    // tensors
    "tensors with invalid data",
    "missing tensor",
    "is missing from model",
    "wrong number of tensors",
    "too many tensors",
    "tensors expected but",
    "has wrong",
    "has invalid",
    "incorrect shape",
    "invalid shape",
    "mismatched shape",
    // types
    "invalid tensor type",
    "unknown tensor type",
    "unrecognized tensor type",
    "unsupported tensor type",
    "ggml type",
    "unsupported type",
    // which part of a model it is
    "invalid split file",
    "illegal split file",
};

bool names_file_fault(std::string_view cause) {
  if (contains_any(cause, kFileFaults)) return true;
  if (cause.starts_with("unknown type") || cause.starts_with("invalid type")) return true;
  // "tensor 'output.weight' not found", maybe behind the function that looked for it
  return contains(cause, "tensor '") && cause.ends_with("' not found");
}

std::optional<FailureClass> class_of_cause(std::string_view cause) {
  if (contains_any(cause, kMemory)) return FailureClass::kResource;
  if (contains_any(cause, kTruncated)) return FailureClass::kPermanent;
  if (contains_any(cause, kMachine)) return std::nullopt;
  const bool stage = std::ranges::any_of(
      kStages, [cause](std::string_view begin) { return cause.starts_with(begin); });
  if (stage || names_file_fault(cause)) return FailureClass::kPermanent;
  return std::nullopt;
}

// gguf's own lines tell of nothing but the file; a length that cannot be allocated is one that was
// read wrongly.
bool is_gguf_fault(std::string_view text) {
  if (contains_any(text, kTruncated)) return true;
  if (contains_any(text, kMachine)) return false;
  if (names_file_fault(text)) return true;
  constexpr std::array<std::string_view, 11> kMore = {
      "only supports up to version",
      "but must be in [",
      "is too long",
      "invalid size ",
      "exceeds maximum",
      "encountered length_error while reading",
      "may cause overflow",
      "encountered bad_alloc error while reading",
      "not a power of 2",
      "failed to seek to beginning of data section",
      "invalid alignment",
  };
  if (contains_any(text, kMore)) return true;
  return text.starts_with("tensor '") &&
         (contains(text, "has offset") || contains(text, "of type"));
}

// The functions that read the tensors throw what they find; some versions print it, too.
bool reads_tensors(std::string_view function) {
  return function == "create_tensor" || function == "check_tensor_dims" ||
         function == "done_getting_tensors";
}

// "invalid model file 'x' (bad magic)", "tensor 'x' has wrong size in model file"
bool is_old_model_fault(std::string_view text) {
  if (text.starts_with("invalid model file")) return names_file_fault(text);
  if (text.starts_with("unknown tensor '")) return contains(text, "in model file");
  return text.starts_with("tensor '") && contains(text, "has wrong") &&
         contains(text, "in model file");
}

}  // namespace

std::optional<FailureClass> class_of_model_error(const NativeMessage& message) {
  const std::string_view text = message.text;
  if (text.starts_with(kLoading)) return class_of_cause(text.substr(kLoading.size()));
  bool fault = false;
  if (message.function.starts_with("gguf_")) {
    fault = is_gguf_fault(text);
  } else if (message.function.starts_with("llama_") || message.function.starts_with("llm_")) {
    fault = is_old_model_fault(text);
  } else if (reads_tensors(message.function)) {
    fault = names_file_fault(text);
  }
  if (!fault) return std::nullopt;
  return FailureClass::kPermanent;
}

}  // namespace berth::core
