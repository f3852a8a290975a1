#include "supervisor/device_drivers.h"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <system_error>
#include <utility>

namespace berth {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_version(std::string_view word) {
  return word.find('.') != std::string_view::npos &&
         word.find_first_not_of("0123456789.") == std::string_view::npos;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Thu Feb 22 01:44:30 UTC 2024"
std::string nvidia_version(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (is_version(word)) return word;
  }
  return {};
}

// A driver that comes with the kernel has no version of its own, or one that never changes.
std::string module_driver(const std::string& root, const std::string& name) {
  const std::string module = root + "/sys/module/" + name;
  std::error_code problem;
  if (!std::filesystem::exists(module, problem)) return {};
  std::string text = name;
  if (const std::string version = first_line(module + "/version"); !version.empty()) {
    text += " " + version;
  }
  utsname kernel{};
  if (::uname(&kernel) == 0) text.append(", kernel ").append(kernel.release);
  return text;
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += "; ";
    text += part;
  }
  return text;
}

}  // namespace

DeviceDrivers DeviceDrivers::read(const std::string& root) {
  DeviceDrivers drivers;
  const std::string version = nvidia_version(first_line(root + "/proc/driver/nvidia/version"));
  if (!version.empty()) drivers.nvidia_ = "nvidia " + version;
  drivers.amd_ = module_driver(root, "amdgpu");
  drivers.intel_ = joined({module_driver(root, "i915"), module_driver(root, "xe")});
  return drivers;
}

std::string DeviceDrivers::of(std::string_view device) const {
  if (device.starts_with("CUDA")) return nvidia_;
  if (device.starts_with("ROCm") || device.starts_with("HIP")) return amd_;
  if (device == "CPU") return {};
  return joined({nvidia_, amd_, intel_});
}

void DriverKeeper::look() {
  if (std::exchange(looking_, true)) return;
  parts_.run_blocking(
      [this] { parts_.clock.post([this, drivers = parts_.read()] { take(drivers); }); });
}

void DriverKeeper::take(const DeviceDrivers& drivers) {
  looking_ = false;
  if (drivers_ == drivers) return;
  drivers_ = drivers;
  if (parts_.on_changed) parts_.on_changed();
}

}  // namespace berth
