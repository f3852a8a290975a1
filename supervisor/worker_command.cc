#include "supervisor/worker_command.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "supervisor/core/memory/cost_model.h"
#include "supervisor/memory/device_environment.h"
#include "supervisor/named_devices.h"

namespace berth {
namespace {

constexpr std::string_view kFolder = "/workers";
constexpr std::size_t kIdCharacters = 12;  // the last group of a UUID: 48 random bits

// "3,2"
std::string numbers(const std::vector<std::uint32_t>& list) {
  std::string text;
  for (const std::uint32_t number : list) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

bool uses_vulkan(const WorkerPlace& place) {
  return std::any_of(place.devices.begin(), place.devices.end(),
                     [](const std::string& device) { return device.starts_with("Vulkan"); });
}

// libllama's name of the device that the model has in that domain: where the configuration names
// it so, by that name, since several backends may list one device.
std::string device_in(core::DomainIndex domain, const std::vector<NamedDevice>& devices,
                      const core::DomainTable& table) {
  const auto named = std::ranges::find(devices, domain, &NamedDevice::domain);
  if (named != devices.end()) return named->name;
  return domain < table.domains.size() ? table.domains[domain].device : "gone";
}

}  // namespace

std::string worker_directory(const std::string& run_dir) {
  return run_dir + std::string(kFolder);
}

std::string worker_socket(const std::string& run_dir, const Uuid& instance) {
  const std::string id = instance.to_string();
  return worker_directory(run_dir) + "/" + id.substr(id.size() - kIdCharacters) + ".sock";
}

std::size_t worker_socket_suffix_bytes() {
  return worker_socket("", Uuid()).size();
}

WorkerPlace configured_place(const catalog::Model& model) {
  const catalog::ModelSettings& settings = model.settings;
  WorkerPlace place;
  place.window = model.served_context;
  // No layer on them is no use of them; then the worker need not load their drivers.
  if (settings.devices.empty() || settings.gpu_layers == 0) return place;
  place.devices = settings.devices;
  if (settings.gpu_layers) place.device_layers = static_cast<std::uint32_t>(*settings.gpu_layers);
  return place;
}

WorkerPlace planned_place(const catalog::Model& model, const residency::LaunchPlan& plan,
                          const core::DomainTable& table) {
  WorkerPlace place = configured_place(model);
  if (plan.window != 0) place.window = plan.window;
  const std::vector<core::Placement::Share>& shares = plan.at.placement.shares;
  if (shares.empty()) {
    for (std::string& name : place.devices) {
      if (const auto device = named_device(name, table)) name = device->name;
    }
    return place;
  }
  const std::vector<NamedDevice> devices = named_devices(model.settings, table);
  place.devices.clear();
  for (const core::Placement::Share& share : shares) {
    place.devices.push_back(device_in(share.device, devices, table));
    if (shares.size() > 1) place.split.push_back(share.layers);
  }
  // How many layers a model has whose header does not tell is not known here.
  if (!model.parts) return place;
  const std::uint32_t layers = core::device_layers(plan.at.placement);
  // "All" also takes layers that the plan leaves out, since libllama never loads them.
  const bool all = layers > model.parts->model.layers.size();
  place.device_layers = all ? std::nullopt : std::optional(layers);
  return place;
}

std::vector<std::string> worker_arguments(const std::string& program, const catalog::Model& model,
                                          const WorkerPlace& place, const Uuid& instance,
                                          const std::string& socket) {
  const catalog::ModelSettings& settings = model.settings;
  std::vector<std::string> argv = {program,
                                   "--model",
                                   model.path,
                                   "--socket",
                                   socket,
                                   "--instance",
                                   instance.to_string(),
                                   "--context",
                                   std::to_string(place.window),
                                   "--sequences",
                                   std::to_string(settings.sequences),
                                   "--kv-type",
                                   settings.kv_type,
                                   "--flash-attention",
                                   settings.flash_attention};
  const auto add = [&argv](std::string name, std::string value) {
    argv.push_back(std::move(name));
    argv.push_back(std::move(value));
  };
  if (settings.threads != 0) add("--threads", std::to_string(settings.threads));
  if (settings.batch != 0) add("--batch", std::to_string(settings.batch));
  if (const std::string_view chat = settings.chat_template; !chat.empty()) {
    const bool builtin = chat.starts_with(catalog::kBuiltinTemplate);
    add("--chat-template",
        std::string(builtin ? chat.substr(catalog::kBuiltinTemplate.size()) : chat));
  }
  for (const std::string& device : place.devices) add("--device", device);
  if (place.device_layers) add("--device-layers", std::to_string(*place.device_layers));
  if (!place.split.empty()) add("--device-split", numbers(place.split));
  // The scale, although it is the default, keeps an equals sign in the path what it is.
  for (const std::string& adapter : settings.adapters) add("--adapter", adapter + "=1");
  if (!settings.draft.empty()) add("--draft", settings.draft);
  if (settings.embeddings) argv.emplace_back("--embeddings");
  if (settings.sandbox == "off") add("--sandbox", "off");
  add("--notify-fd", "3");
  argv.emplace_back("--parent-stdin");
  return argv;
}

std::vector<std::string> first_load_arguments() {
  return {"--prove-micro-batch"};
}

std::vector<std::string> worker_environment(const std::vector<std::string>& environment,
                                            const WorkerPlace& place) {
  return memory::device_environment(environment, uses_vulkan(place));
}

}  // namespace berth
