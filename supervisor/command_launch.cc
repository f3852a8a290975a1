#include "supervisor/command_launch.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/fd.h"
#include "common/text.h"
#include "supervisor/catalog/placeholders.h"
#include "supervisor/worker_command.h"

namespace berth {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr std::size_t kShownBytes = 200;

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
         configures_devices(variable);
}

// Of the XDG_… variables those of the Base Directory Specification are configuration; the others
// say which session berthd was started from, or where that has its sockets.
bool changes_with_logins(std::string_view name) {
  return name.starts_with("XDG_") && !name.ends_with("_HOME") && !name.ends_with("_DIRS");
}

std::string value_of(const std::vector<std::string>& environment, std::string_view name,
                     std::string_view fallback) {
  for (const std::string& variable : environment) {
    if (name_of(variable) == name) return variable.substr(name.size() + 1);
  }
  return std::string(fallback);
}

bool is_program(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_program(const std::string& name, const std::string& directory,
                                 const std::string& path) {
  const std::string shown = "\"" + printable_line(name, kShownBytes) + "\"";
  const std::filesystem::path from = directory.empty() ? "/" : directory;
  if (name.find('/') != std::string::npos) {
    const std::filesystem::path whole = (from / name).lexically_normal();
    if (is_program(whole)) return whole.string();
    return fail(Reason::kLoadFailed,
                std::string(::access(whole.c_str(), F_OK) == 0 ? "no program that can be executed: "
                                                               : "no such program: ") +
                    shown);
  }
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    const std::filesystem::path folder = path.substr(start, end - start);
    if (folder.is_absolute() && is_program(folder / name)) return (folder / name).string();
    start = end + 1;
  }
  return fail(Reason::kLoadFailed, "no such program: " + shown + "; it is in no directory of PATH");
}

// Reads the beginnings of the program and of its interpreters ("#!"), as execve does, so that a
// disk that has to wake up or a network that hangs is waited for here and not where it is executed.
// What cannot be read is execve's business.
void touch_program(std::string path) {
  constexpr int kMostInterpreters = 4;  // more are ELOOP
  for (int i = 0; i <= kMostInterpreters; ++i) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) return;
    std::array<char, 4096> part{};
    const ssize_t got = ::pread(file.get(), part.data(), part.size(), 0);
    if (got <= 0) return;
    std::string_view line(part.data(), static_cast<std::size_t>(got));
    if (!line.starts_with("#!")) return;
    line = line.substr(2, line.find('\n') - 2);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    path = line.substr(0, line.find_first_of(" \t"));
    if (!path.starts_with('/')) return;
  }
}

Result<std::string> random_key() {
  constexpr std::size_t kBytes = 32;
  std::array<unsigned char, kBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail(Reason::kLoadFailed, "no random numbers for a key");
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
  launch.directory = settings.directory;
  if (!launch.directory.empty() && !std::filesystem::is_directory(launch.directory)) {
    return fail(Reason::kLoadFailed, "the working directory is not there");
  }
  Result<std::string> program = find_program(launch.argv.front(), launch.directory,
                                             value_of(launch.environment, "PATH", kDefaultPath));
  if (!program) return fail(std::move(program).error());
  launch.program = *std::move(program);
  touch_program(launch.program);
  return launch;
}

}  // namespace berth
