#include "worker/engine/llama_devices.h"

#include <algorithm>

#include "worker/engine/backends.h"
#include "worker/engine/llama_log.h"

namespace berth::worker {
namespace {

void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20) {
      out.append("\\u00").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

std::string_view device_kind(enum ggml_backend_dev_type type) {
  switch (type) {
    case GGML_BACKEND_DEVICE_TYPE_CPU:
      return "cpu";
    case GGML_BACKEND_DEVICE_TYPE_GPU:
      return "gpu";
    case GGML_BACKEND_DEVICE_TYPE_IGPU:
      return "integrated_gpu";
    case GGML_BACKEND_DEVICE_TYPE_ACCEL:
      return "accelerator";
    default:
      return "other";
  }
}

// "Vulkan0, Vulkan1", without the processor.
std::string device_names() {
  std::string names;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const std::string_view name(ggml_backend_dev_name(ggml_backend_dev_get(i)));
    if (is_device(name)) names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

LoadFailure missing_device(const std::string& name) {
  const auto names = device_names();
  auto reason = "there is no device " + name;
  if (ggml_backend_dev_by_name(name.c_str()) != nullptr) {
    reason = name + " is the processor, which is no device to put layers on";
  }
  return LoadFailure{"permanent", reason + "; its backend finds " +
                                      (names.empty() ? "none" : names) +
                                      " (berth-worker --devices lists all)"};
}

}  // namespace

bool is_device(std::string_view name) {
  auto* const device = ggml_backend_dev_by_name(std::string(name).c_str());
  return device != nullptr && ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU;
}

tl::expected<Placement, LoadFailure> place(const EngineSettings& settings) {
  Placement placement;
  if (settings.devices.empty()) return placement;
  placement.devices.clear();
  for (const auto& name : settings.devices) {
    load_device_backend(name);
    if (!is_device(name)) return tl::unexpected(missing_device(name));
    auto* const device = ggml_backend_dev_by_name(name.c_str());
    if (std::find(placement.devices.begin(), placement.devices.end(), device) !=
        placement.devices.end()) {
      return tl::unexpected(LoadFailure{"permanent", "the device " + name + " is named twice"});
    }
    placement.devices.push_back(device);
  }
  placement.devices.push_back(nullptr);
  placement.layers =
      settings.device_layers ? static_cast<std::int32_t>(*settings.device_layers) : -1;
  const auto most = llama_max_devices();
  if (settings.devices.size() > most) {
    return tl::unexpected(LoadFailure{"permanent", "a model cannot be split over more than " +
                                                       std::to_string(most) + " devices"});
  }
  if (!settings.device_split.empty()) {
    placement.split = settings.device_split;
    placement.split.resize(most);
  }
  return placement;
}

std::string llama_devices_json() {
  LlamaLog::instance().install();
  load_all_backends();
  std::string json = "{\"devices\":[";
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    auto* const device = ggml_backend_dev_get(i);
    ggml_backend_dev_props properties{};
    ggml_backend_dev_get_props(device, &properties);
    const auto text = [](const char* value) { return std::string_view(value ? value : ""); };
    json.append(i == 0 ? "" : ",").append("{\"name\":");
    append_json(json, text(properties.name));
    json.append(",\"description\":");
    append_json(json, text(properties.description));
    json.append(",\"type\":");
    append_json(json, device_kind(properties.type));
    json.append(",\"id\":");
    append_json(json, text(properties.device_id));
    json.append(",\"free_bytes\":").append(std::to_string(properties.memory_free));
    json.append(",\"total_bytes\":").append(std::to_string(properties.memory_total)).append("}");
  }
  json.append("]}\n");
  return json;
}

}  // namespace berth::worker
