#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace berth::process {

// A variable in the environment of every worker, which its descendants inherit: by it they are
// found when all that knew them is gone.

// Names the state directory that workers belong to, so that two supervisors on one machine never
// take each other's for leftovers: its device and inode, which a copy of it does not share.
// Errors: kInternal where it cannot be looked at.
Result<std::string> mark_owner(const std::string& state_directory);

// "BERTH_INSTANCE=<instance>@<owner>"
std::string instance_mark(std::string_view instance, std::string_view owner);

// The two parts of a mark.
struct InstanceMark {
  std::string instance;
  std::string owner;
};
// The parts of the last mark among variables ("NAME=value"); absent: none has one.
std::optional<InstanceMark> find_mark(const std::vector<std::string>& variables);

// The instance that an environment (as in /proc/PID/environ, "NAME=value" with '\0' between) was
// marked with by `owner`. Absent: no mark, another owner's, or none that instance_mark() made.
std::optional<std::string> marked_instance(std::string_view environment, std::string_view owner);

}  // namespace berth::process
