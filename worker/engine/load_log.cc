#include "worker/engine/load_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::size_t kReasonBytes = 300;
constexpr std::size_t kMaxBuffers = 256;
constexpr double kBytesPerMiB = 1024.0 * 1024.0;

// Texts that stand for a fault of the file, as this libllama sees it.
constexpr std::array<std::string_view, 21> kPermanent = {
    "unknown model architecture",
    "unknown (unsupported) architecture",
    "invalid magic characters",
    "failed to read magic",
    "is not within the file bounds",
    "model is corrupted or incomplete",
    "missing tensor",
    "wrong number of tensors",
    "has wrong shape",
    "has invalid ggml type",
    "unknown pre-tokenizer type",
    "error loading model vocabulary",
    "error loading model hyperparameters",
    "error loading model architecture",
    "failed to read key-value pairs",
    "failed to read tensor info",
    "failed to read header",
    "is not supported by this version",
    "model has no tensors",
    "may cause overflow errors",
    "this GGUF file is version",
};

// Texts that stand for memory that could not be had.
constexpr std::array<std::string_view, 10> kResource = {
    "failed to allocate",
    "unable to allocate",
    "out of memory",
    "cudaMalloc failed",
    "ErrorOutOfDeviceMemory",
    "ErrorOutOfHostMemory",
    "std::bad_alloc",
    "Cannot allocate memory",
    "Device memory allocation of size",
    "failed to initialize the memory",
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "tensor 'x' not found"
bool is_missing_tensor(std::string_view line) {
  const auto tensor = line.find("tensor '");
  return tensor != std::string_view::npos &&
         line.find("' not found", tensor) != std::string_view::npos;
}

std::string_view last_word(std::string_view text) {
  const auto end = text.find_last_not_of(' ');
  if (end == std::string_view::npos) return {};
  const auto blank = text.find_last_of(' ', end);
  const auto begin = blank == std::string_view::npos ? 0 : blank + 1;
  return text.substr(begin, end + 1 - begin);
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  if (what.empty()) return;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
    at += with.size();
  }
}

}  // namespace

std::string_view classify_load_line(std::string_view line) {
  const auto in_line = [line](std::string_view part) { return contains(line, part); };
  if (std::any_of(kPermanent.begin(), kPermanent.end(), in_line) || is_missing_tensor(line)) {
    return "permanent";
  }
  if (std::any_of(kResource.begin(), kResource.end(), in_line)) return "resource";
  return {};
}

LoadLog::LoadLog(std::function<bool(std::string_view)> is_device)
    : is_device_(std::move(is_device)) {}

void LoadLog::add_line(std::string_view line, bool is_error) {
  add_buffer(line);
  add_layers(line);
  if (!is_error) return;
  (contains(line, "failed to load model") ? last_general_error_ : last_error_) = line;
  if (class_.empty()) {
    class_ = classify_load_line(line);
    if (!class_.empty()) class_line_ = line;
  }
}

// "load_tensors:   CPU_Mapped model buffer size =     2.61 MiB"
void LoadLog::add_buffer(std::string_view line) {
  constexpr std::string_view kMark = " buffer size =";
  const auto mark = line.find(kMark);
  if (mark == std::string_view::npos || buffers_.size() >= kMaxBuffers) return;
  auto number = line.substr(mark + kMark.size());
  const auto digit = number.find_first_not_of(' ');
  if (digit == std::string_view::npos) return;
  number.remove_prefix(digit);
  double mebibytes = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), mebibytes);
  if (parsed.ec != std::errc() || !(mebibytes >= 0) || mebibytes > 1e9) return;
  number.remove_prefix(static_cast<std::size_t>(parsed.ptr - number.data()));
  if (!number.starts_with(" MiB")) return;

  const auto before = line.substr(0, mark);
  const auto what = last_word(before);
  if (what.empty()) return;
  const auto name =
      last_word(before.substr(0, static_cast<std::size_t>(what.data() - before.data())));
  if (name.empty() || name.back() == ':') return;
  const auto bytes = static_cast<std::uint64_t>(std::llround(mebibytes * kBytesPerMiB));

  // A context may reserve its working buffers twice: the later size holds. Weights and KV come in
  // several parts: these add up.
  const auto same = std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) {
    return buffer.name == name && buffer.what == what;
  });
  if (same == buffers_.end()) {
    buffers_.push_back(Buffer{std::string(name), std::string(what), bytes});
  } else if (kind_of(what) == Kind::kWorking) {
    same->bytes = bytes;
  } else {
    same->bytes += bytes;
  }
}

// "load_tensors: offloaded 3/5 layers to GPU"
void LoadLog::add_layers(std::string_view line) {
  constexpr std::string_view kMark = "offloaded ";
  const auto mark = line.find(kMark);
  if (mark == std::string_view::npos) return;
  const auto text = line.substr(mark + kMark.size());
  const auto* const end = text.data() + text.size();
  std::uint32_t some = 0;
  std::uint32_t all = 0;
  const auto first = std::from_chars(text.data(), end, some);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return;
  const auto second = std::from_chars(first.ptr + 1, end, all);
  if (second.ec != std::errc() || some > all) return;
  device_layers_ = some;
  layers_ = all;
}

LoadLog::Kind LoadLog::kind_of(std::string_view what) {
  if (what == "model" || what == "LoRA") return Kind::kWeights;
  if (what == "KV" || what == "RS") return Kind::kKv;  // RS: the state of recurrent models
  return Kind::kWorking;
}

std::vector<MemoryUse> LoadLog::memory() const {
  std::vector<MemoryUse> uses;
  uses.push_back(MemoryUse{"host"});
  for (const auto& buffer : buffers_) {
    const std::string domain = is_device_(buffer.name) ? buffer.name : "host";
    auto use = std::find_if(uses.begin(), uses.end(),
                            [&](const MemoryUse& one) { return one.domain == domain; });
    if (use == uses.end()) use = uses.insert(uses.end(), MemoryUse{domain});
    switch (kind_of(buffer.what)) {
      case Kind::kWeights:
        use->weights_bytes += buffer.bytes;
        // ggml's name for memory that is a part of a file: "CPU_Mapped".
        if (buffer.name.ends_with("_Mapped")) use->mapped_bytes += buffer.bytes;
        break;
      case Kind::kKv:
        use->kv_bytes += buffer.bytes;
        break;
      case Kind::kWorking:
        use->working_bytes += buffer.bytes;
        break;
    }
  }
  return uses;
}

LoadFailure failure_within_load(LoadLog& log, std::string_view problem) {
  // Behind what libllama said, so that it has the last word where no line has a class.
  log.add_line(problem, true);
  return log.failure("", problem);
}

void add_memory(std::vector<MemoryUse>& sum, const std::vector<MemoryUse>& more) {
  for (const auto& use : more) {
    auto same = std::find_if(sum.begin(), sum.end(),
                             [&](const MemoryUse& one) { return one.domain == use.domain; });
    if (same == sum.end()) same = sum.insert(sum.end(), MemoryUse{use.domain});
    same->weights_bytes += use.weights_bytes;
    same->kv_bytes += use.kv_bytes;
    same->working_bytes += use.working_bytes;
    same->mapped_bytes += use.mapped_bytes;
  }
}

LoadFailure LoadLog::failure(std::string_view path, std::string_view fallback) const {
  LoadFailure failure;
  failure.failure_class = class_.empty() ? "unclassified" : class_;
  std::string reason = !class_.empty() ? class_line_ : last_error_;
  if (reason.empty()) reason = last_general_error_;
  if (reason.empty()) reason = fallback;
  replace_all(reason, path, "<path>");
  if (const auto slash = path.find_last_of('/'); slash != std::string_view::npos && slash > 0) {
    replace_all(reason, path.substr(0, slash + 1), "");
  }
  failure.reason = printable_line(reason, kReasonBytes);
  return failure;
}

}  // namespace berth::worker
