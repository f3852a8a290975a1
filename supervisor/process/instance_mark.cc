#include "supervisor/process/instance_mark.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "common/errno_text.h"
#include "common/uuid.h"

namespace berth::process {
namespace {

constexpr std::string_view kName = "BERTH_INSTANCE=";

}  // namespace

Result<std::string> mark_owner(const std::string& state_directory) {
  struct stat status {};
  if (::stat(state_directory.c_str(), &status) != 0) {
    return fail(Reason::kInternal, "stat " + state_directory + ": " + errno_text(errno));
  }
  return std::to_string(status.st_dev) + "-" + std::to_string(status.st_ino);
}

std::string instance_mark(std::string_view instance, std::string_view owner) {
  return std::string(kName) + std::string(instance) + "@" + std::string(owner);
}

std::optional<InstanceMark> find_mark(const std::vector<std::string>& variables) {
  for (auto variable = variables.rbegin(); variable != variables.rend(); ++variable) {
    if (!variable->starts_with(kName)) continue;
    const std::size_t at = variable->find('@');
    if (at == std::string::npos) continue;
    return InstanceMark{variable->substr(kName.size(), at - kName.size()),
                        variable->substr(at + 1)};
  }
  return std::nullopt;
}

std::optional<std::string> marked_instance(std::string_view environment, std::string_view owner) {
  while (!environment.empty()) {
    std::string_view variable = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(variable.size() + 1, environment.size()));
    if (!variable.starts_with(kName)) continue;
    variable.remove_prefix(kName.size());
    const std::size_t at = variable.find('@');
    if (at == std::string_view::npos || variable.substr(at + 1) != owner) continue;
    const std::string_view instance = variable.substr(0, at);
    // What others write there gets into no event.
    if (!Uuid::parse(instance).is_nil()) return std::string(instance);
  }
  return std::nullopt;
}

}  // namespace berth::process
