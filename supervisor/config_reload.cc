#include "supervisor/config_reload.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/cores.h"

namespace berth {
namespace {

constexpr std::string_view kServer = "server.";
// What of it is only looked up when somebody waits.
constexpr std::array<std::string_view, 5> kWaits = {"server.queue_timeout", "server.max_wait",
                                                    "server.swap_drain", "server.grace",
                                                    "server.retry_grace"};

std::string summary(const catalog::ConfigResult& read) {
  if (read.problems.empty()) return "it cannot be read";
  std::string text = read.problems.front().to_string();
  const std::size_t more = read.problems.size() - 1 + read.problems_left_out;
  if (more > 0) text += " (and " + std::to_string(more) + " more; `berth config check` tells all)";
  return text;
}

}  // namespace

catalog::ConfigResult read_config(const DaemonOptions& options) {
  if (!options.demo_dir.empty()) return catalog::demo_config(options.demo_dir);
  return catalog::load_config(options.config_file.empty() ? catalog::default_config_path()
                                                          : options.config_file);
}

ConfigReload reload_config(const catalog::Config& now, catalog::ConfigResult read) {
  ConfigReload reload;
  if (!read.config) {
    reload.problem = summary(read);
    return reload;
  }
  catalog::Config config = *std::move(read.config);
  catalog::ServerConfig server = now.server;
  server.queue_timeout = config.server.queue_timeout;
  server.max_wait = config.server.max_wait;
  server.swap_drain = config.server.swap_drain;
  server.grace = config.server.grace;
  server.retry_grace = config.server.retry_grace;
  config.server = std::move(server);
  for (catalog::Setting& setting : config.settings) {
    if (!setting.key.starts_with(kServer)) continue;
    if (std::ranges::find(kWaits, setting.key) != kWaits.end()) continue;
    const auto old = std::ranges::find(now.settings, setting.key, &catalog::Setting::key);
    if (old == now.settings.end() || old->value == setting.value) continue;
    reload.unapplied.push_back(setting.key);
    setting = *old;
  }
  reload.config = std::make_shared<const catalog::Config>(std::move(config));
  return reload;
}

residency::Limits limits_of(const catalog::Config& config) {
  residency::Limits limits;
  limits.queue_timeout = config.server.queue_timeout;
  limits.cores = usable_cores();
  limits.plan.max_wait = config.server.max_wait;
  limits.plan.grace = config.server.grace;
  limits.plan.retry_grace = config.server.retry_grace;
  limits.swap_drain = config.server.swap_drain;
  return limits;
}

}  // namespace berth
