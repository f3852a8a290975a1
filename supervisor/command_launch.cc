#include "supervisor/command_launch.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "supervisor/catalog/placeholders.h"
#include "supervisor/memory/device_environment.h"
#include "supervisor/process/launch_error.h"

namespace berth {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// A program that was not made for berth expects a home and a locale as in a session.
constexpr std::array<std::string_view, 8> kNames = {"PATH", "HOME", "USER",   "LOGNAME",
                                                    "LANG", "TZ",   "TMPDIR", "SHELL"};
constexpr std::array<std::string_view, 2> kPrefixes = {"LC_", "XDG_"};

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

bool handed_on(std::string_view variable) {
  const std::string_view name = name_of(variable);
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
         memory::configures_devices(variable);
}

// Of the XDG_… variables those of the Base Directory Specification are configuration; the others
// say which session berthd was started from, or where that has its sockets.
bool changes_with_logins(std::string_view name) {
  return name.starts_with("XDG_") && !name.ends_with("_HOME") && !name.ends_with("_DIRS");
}

Result<std::string> random_key() {
  constexpr std::size_t kBytes = 32;
  std::array<unsigned char, kBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail(process::launch_error("getrandom", errno));
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string key;
  for (const unsigned char byte : bytes) {
    key += kDigits[byte >> 4U];
    key += kDigits[byte & 15U];
  }
  return key;
}

}  // namespace

CommandTemplate command_template(const catalog::ModelSettings& settings,
                                 const std::vector<std::string>& environment) {
  CommandTemplate open;
  open.argv = settings.command;
  bool has_path = settings.environment.contains("PATH");
  for (const std::string& variable : environment) {
    const std::string name(name_of(variable));
    if (name.size() == variable.size() || !handed_on(variable)) continue;
    if (settings.environment.contains(name)) continue;
    has_path = has_path || name == "PATH";
    open.environment.push_back(variable);
  }
  if (!has_path) open.environment.push_back("PATH=" + std::string(kDefaultPath));
  for (const auto& [name, value] : settings.environment) {
    std::string variable = name;
    open.environment.push_back(variable.append("=").append(value));
  }
  return open;
}

std::vector<std::string> hashed_environment(const catalog::ModelSettings& settings,
                                            const CommandTemplate& open) {
  std::vector<std::string> hashed;
  for (const std::string& variable : open.environment) {
    const std::string name(name_of(variable));
    if (!changes_with_logins(name) || settings.environment.contains(name)) {
      hashed.push_back(variable);
    }
  }
  return hashed;
}

Result<CommandLaunch> prepare_command(const catalog::ModelSettings& settings,
                                      const CommandTemplate& open, const std::string& socket,
                                      process::PortBook& ports) {
  CommandLaunch launch;
  Result<std::string> key = random_key();
  if (!key) return fail(std::move(key).error());
  launch.key = *std::move(key);
  const std::set<std::string> names = catalog::placeholders_of(settings);
  std::map<std::string, std::string> values = {{std::string(catalog::kKeyPlaceholder), launch.key}};
  if (names.contains(std::string(catalog::kSocketPlaceholder))) {
    launch.socket = socket;
    values.emplace(catalog::kSocketPlaceholder, socket);
  }
  if (names.contains(std::string(catalog::kPortPlaceholder))) {
    Result<process::ReservedPort> port = ports.reserve();
    if (!port) return fail(std::move(port).error());
    launch.port = *std::move(port);
    values.emplace(catalog::kPortPlaceholder, std::to_string(launch.port.port));
  }
  for (const std::string& argument : open.argv) {
    launch.argv.push_back(catalog::fill_placeholders(argument, values));
  }
  for (const std::string& variable : open.environment) {
    const std::string name(name_of(variable));
    // What berthd itself was given is taken as it is.
    launch.environment.push_back(settings.environment.contains(name)
                                     ? catalog::fill_placeholders(variable, values)
                                     : variable);
  }
  launch.place = program_place(launch.argv.front(), settings.directory, launch.environment);
  return launch;
}

}  // namespace berth
