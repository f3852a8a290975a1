#include <string>
#include <string_view>

#include "llama.h"
#include "worker/engine/backends.h"
#include "worker/engine/llama_engine.h"
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

}  // namespace

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
