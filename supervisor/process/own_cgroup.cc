#include "supervisor/process/own_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "common/errno_text.h"
#include "common/kernel_file.h"

namespace berth::process {
namespace {

std::string text_of(const std::string& path) {
  return read_kernel_file(path).value_or(std::string());
}

// mountinfo writes blanks and backslashes as "\040".
std::string unescaped(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, kDigits);
    const bool octal =
        text[i] == '\\' && digits.size() == kDigits &&
        std::ranges::all_of(digits, [](char digit) { return digit >= '0' && digit <= '7'; });
    if (!octal) {
      plain += text[i];
      continue;
    }
    int code = 0;
    for (const char digit : digits) code = code * 8 + (digit - '0');
    plain += static_cast<char>(code);
    i += kDigits;
  }
  return plain;
}

struct Mount {
  std::string root;  // what of the hierarchy is mounted
  std::string point;
};

// Of a line "31 23 0:28 /root /point rw - cgroup2 source rw".
std::optional<Mount> cgroup2_mount(const std::string& line) {
  std::istringstream words(line);
  const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
  constexpr std::size_t kFixed = 6;
  constexpr std::size_t kRoot = 3;
  constexpr std::size_t kPoint = 4;
  if (fields.size() < kFixed) return std::nullopt;
  const auto dash = std::find(fields.begin() + kFixed, fields.end(), "-");
  if (dash == fields.end() || dash + 1 == fields.end() || *(dash + 1) != "cgroup2") {
    return std::nullopt;
  }
  return Mount{unescaped(fields[kRoot]), unescaped(fields[kPoint])};
}

// What of `path` is below `root`; nothing where it is not below it.
std::optional<std::string> below(const std::string& path, const std::string& root) {
  if (root == "/") return path == "/" ? std::string() : path;
  if (path == root) return std::string();
  if (path.starts_with(root + "/")) return path.substr(root.size());
  return std::nullopt;
}

bool marked_as_delegated(const std::string& directory) {
  for (const char* const name : {"user.delegate", "trusted.delegate"}) {
    char value = 0;
    if (::getxattr(directory.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

std::optional<uid_t> owner(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_uid;
}

}  // namespace

Result<std::string> cgroup_directory(std::string_view membership, std::string_view mounts) {
  std::string path;
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) path = line.substr(3);
  }
  if (path.empty()) return fail(Reason::kNotFound, "there is no cgroup of version 2");
  // A process outside of what this namespace shows is in "/../other".
  if ((path + "/").find("/../") != std::string::npos) {
    return fail(Reason::kNotFound, "the own cgroup is outside of the cgroup namespace");
  }
  std::istringstream mounted{std::string(mounts)};
  for (std::string line; std::getline(mounted, line);) {
    const auto mount = cgroup2_mount(line);
    const auto rest = mount ? below(path, mount->root) : std::nullopt;
    if (rest) return mount->point + *rest;
  }
  return fail(Reason::kNotFound, "the cgroup " + path + " is not mounted");
}

Result<std::string> own_cgroup() {
  return cgroup_directory(text_of("/proc/self/cgroup"), text_of("/proc/self/mountinfo"));
}

Result<std::string> cgroup_mount() {
  return cgroup_directory("0::/", text_of("/proc/self/mountinfo"));
}

bool runs_as_service() {
  // NOLINTBEGIN(concurrency-mt-unsafe): nobody changes the environment
  if (std::getenv("INVOCATION_ID") == nullptr) return false;
  const char* const executed = std::getenv("SYSTEMD_EXEC_PID");
  // NOLINTEND(concurrency-mt-unsafe)
  return executed == nullptr || std::to_string(::getpid()) == executed;
}

Status check_delegated(const std::string& directory) {
  for (const char* const name : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
    const std::string path = directory + name;
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
      return fail(Reason::kNotFound, path + " cannot be written to: " + errno_text(errno));
    }
  }
  const auto own = owner(directory);
  const auto parent = owner(directory + "/..");
  const bool given = own == ::geteuid() && parent && parent != own;
  if (!given && !marked_as_delegated(directory)) {
    return fail(Reason::kNotFound, directory + " is not delegated (Delegate=yes in the unit)");
  }
  std::istringstream processes(text_of(directory + "/cgroup.procs"));
  for (pid_t pid = 0; processes >> pid;) {
    if (pid == ::getpid()) continue;
    return fail(Reason::kNotFound,
                "process " + std::to_string(pid) + " is in " + directory + ", too");
  }
  return {};
}

Result<std::string> delegated_cgroup() {
  if (!runs_as_service()) return fail(Reason::kNotFound, "berthd does not run as a service");
  Result<std::string> directory = own_cgroup();
  if (!directory) return directory;
  if (Status given = check_delegated(*directory); !given) return fail(std::move(given).error());
  return directory;
}

}  // namespace berth::process
