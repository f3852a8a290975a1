#include "supervisor/memory/device_list.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>

namespace berth::memory {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostDevices = 64;

core::DeviceType type_of(std::string_view name) {
  if (name == "cpu") return core::DeviceType::kProcessor;
  if (name == "gpu") return core::DeviceType::kGpu;
  if (name == "integrated_gpu") return core::DeviceType::kIntegratedGpu;
  if (name == "accelerator") return core::DeviceType::kAccelerator;
  return core::DeviceType::kOther;
}

std::string text_of(const json::object& from, std::string_view key) {
  const json::value* const value = from.if_contains(key);
  const json::string* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

std::uint64_t bytes_of(const json::object& from, std::string_view key) {
  const json::value* const value = from.if_contains(key);
  if (value == nullptr) return 0;
  if (const std::uint64_t* const large = value->if_uint64()) return *large;
  const std::int64_t* const number = value->if_int64();
  return number == nullptr || *number < 0 ? 0 : static_cast<std::uint64_t>(*number);
}

}  // namespace

Result<std::vector<core::ListedDevice>> parse_device_list(std::string_view text) {
  json::error_code error;
  const json::value document = json::parse(text, error);
  if (error) {
    return fail(Reason::kInternal, "The list of devices is no JSON document: " + error.message());
  }
  const json::object* const top = document.if_object();
  const json::value* const list = top == nullptr ? nullptr : top->if_contains("devices");
  const json::array* const devices = list == nullptr ? nullptr : list->if_array();
  if (devices == nullptr) {
    return fail(Reason::kInternal, "The list of devices has no array `devices`.");
  }
  std::vector<core::ListedDevice> all;
  for (const json::value& entry : *devices) {
    const json::object* const device = entry.if_object();
    if (device == nullptr || text_of(*device, "name").empty()) {
      return fail(Reason::kInternal, "A device of the list has no name.");
    }
    if (all.size() == kMostDevices) break;
    all.push_back({text_of(*device, "name"), text_of(*device, "description"),
                   text_of(*device, "id"), type_of(text_of(*device, "type")),
                   bytes_of(*device, "total_bytes"), bytes_of(*device, "free_bytes")});
  }
  return all;
}

Result<std::vector<core::ListedDevice>> find_device_list(std::string_view output) {
  while (!output.empty()) {
    const std::size_t end = output.find('\n');
    const std::string_view line = output.substr(0, end);
    output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
    if (line.starts_with("{\"devices\"")) return parse_device_list(line);
  }
  return fail(Reason::kInternal, "It printed no list.");
}

}  // namespace berth::memory
