#include "supervisor/core/log/allocation_size.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

namespace berth::core {
namespace {

constexpr double kBytesPerMiB = 1024.0 * 1024.0;
constexpr double kMostMiB = 1e9;
constexpr std::size_t kMostName = 64;

// What follows the mark; absent: the text has no such mark.
std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + mark.size());
}

// "1048576", "5.00 MiB" at the start of the text.
std::optional<std::uint64_t> size_of(std::string_view text) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || !(number > 0)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  const double mebibytes = text.starts_with(" MiB") ? number : number / kBytesPerMiB;
  if (!(mebibytes <= kMostMiB)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(mebibytes * kBytesPerMiB));
}

std::optional<std::string> name_of(std::string_view text) {
  if (text.empty() || text.size() > kMostName) return std::nullopt;
  if (text.find_first_of(" :") != std::string_view::npos) return std::nullopt;
  return std::string(text);
}

// "failed to allocate CUDA0 buffer of size 1048576"
std::optional<RefusedAllocation> plain_refusal(std::string_view line) {
  const auto what = after(line, "failed to allocate ");
  if (!what) return std::nullopt;
  constexpr std::string_view kMark = "buffer of size ";
  const auto mark = what->find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const auto bytes = size_of(what->substr(mark + kMark.size()));
  if (!bytes) return std::nullopt;
  if (mark == 0) return RefusedAllocation{{}, *bytes};
  const auto name = name_of(what->substr(0, mark - 1));
  if (!name) return std::nullopt;
  return RefusedAllocation{*name == "output" ? std::string() : *name, *bytes};
}

// "allocating 512.00 MiB on device 0: cudaMalloc failed: out of memory"
std::optional<RefusedAllocation> cuda_refusal(std::string_view line) {
  const auto what = after(line, ": allocating ");
  if (!what || line.find("cudaMalloc failed") == std::string_view::npos) return std::nullopt;
  const auto bytes = size_of(*what);
  const auto device = after(*what, " on device ");
  if (!bytes || !device) return std::nullopt;
  const auto number = device->substr(0, device->find(':'));
  if (number.empty() || number.size() > 2 ||
      number.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return RefusedAllocation{"CUDA" + std::string(number), *bytes};
}

// "ggml_vulkan: Device memory allocation of size 1048576 failed." does not say of which device;
// "unable to allocate Vulkan0 buffer", which comes later, does.
std::optional<std::uint64_t> vulkan_size(std::string_view line) {
  const auto what = after(line, "Device memory allocation of size ");
  return what ? size_of(*what) : std::nullopt;
}

std::optional<std::string> named_buffer(std::string_view line) {
  const auto what = after(line, "unable to allocate ");
  if (!what) return std::nullopt;
  const auto end = what->find(" buffer");
  return end == std::string_view::npos ? std::nullopt : name_of(what->substr(0, end));
}

}  // namespace

std::optional<RefusedAllocation> refused_allocation(std::span<const std::string> lines) {
  std::optional<std::uint64_t> size;
  for (const std::string& line : lines) {
    if (auto refused = cuda_refusal(line)) return refused;
    if (auto refused = plain_refusal(line)) {
      // What one layer says of the allocation of another one beneath it names the buffer.
      if (size && refused->buffer.empty()) continue;
      return refused;
    }
    if (!size) size = vulkan_size(line);
    if (!size) continue;
    if (auto name = named_buffer(line)) return RefusedAllocation{*std::move(name), *size};
  }
  return std::nullopt;
}

}  // namespace berth::core
