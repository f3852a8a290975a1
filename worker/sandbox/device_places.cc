#include <dirent.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "worker/sandbox/landlock.h"
#include "worker/sandbox/places.h"

namespace berth::worker {
namespace {

// What the drivers of NVIDIA, AMD and Intel and the loaders of Vulkan and OpenCL read.
constexpr std::array kReadable = {
    // libraries outside the usual folders, with the kernels that ROCm's bring
    "/usr/local", "/opt/rocm", "/opt/cuda", "/run/opengl-driver",
    // descriptions of drivers and devices
    "/etc/vulkan", "/usr/share/vulkan", "/etc/OpenCL", "/usr/share/drirc.d", "/etc/drirc",
    "/usr/share/glvnd", "/etc/glvnd", "/usr/share/libdrm", "/usr/share/hwdata",
    "/usr/share/misc/pci.ids", "/etc/nvidia", "/usr/share/nvidia",
    // the kernel's
    "/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/proc/filesystems", "/proc/version",
    "/proc/sys/vm", "/sys/devices", "/sys/bus", "/sys/class/drm", "/sys/class/kfd", "/sys/dev/char",
    "/sys/module", "/sys/firmware/devicetree"};

constexpr std::array kNodes = {"/dev/dri",   "/dev/kfd",     "/dev/dxg",
                               "/dev/mali0", "/dev/udmabuf", "/dev/dma_heap"};
constexpr std::string_view kNvidiaNodes = "nvidia";  // what their names begin with

// Where the loader of Vulkan is told of drivers and layers: files, or folders of them.
constexpr std::array kVulkanVariables = {"VK_DRIVER_FILES",     "VK_ICD_FILENAMES",
                                         "VK_ADD_DRIVER_FILES", "VK_LAYER_PATH",
                                         "VK_ADD_LAYER_PATH",   "VK_IMPLICIT_LAYER_PATH"};

const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no other thread yet
}

bool any_named(const std::vector<std::string>& devices, std::string_view beginning) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const std::string& name) { return name.starts_with(beginning); });
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// The value of "library_path" in a description of a Vulkan driver; empty where it has none, or one
// that is looked for among the libraries. Escapes are not undone: such a path is just not allowed.
std::string library_of(const std::string& description) {
  constexpr std::string_view kKey = "\"library_path\"";
  constexpr std::streamsize kMostBytes = 64 << 10;
  std::string text(static_cast<std::size_t>(kMostBytes), '\0');
  std::ifstream file(description, std::ios::binary);
  file.read(text.data(), kMostBytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  const auto key = text.find(kKey);
  if (key == std::string::npos) return {};
  const auto begin = text.find('"', key + kKey.size());
  if (begin == std::string::npos) return {};
  const auto value = text.substr(begin + 1, text.find('"', begin + 1) - begin - 1);
  if (value.find('/') == std::string::npos) return {};
  return value.front() == '/' ? value : folder_of(description) + "/" + value;
}

void allow_vulkan_drivers(std::vector<Grant>& grants) {
  for (const auto* const name : kVulkanVariables) {
    for (const auto& path : split_paths(variable(name))) {
      grants.push_back({path, FileAccess::kRead});
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error)) continue;
      if (const auto library = library_of(path); !library.empty()) {
        grants.push_back({folder_of(library), FileAccess::kRead});
      }
    }
  }
}

// The folders of the system's loader: toolkits put theirs there.
void allow_library_folders(std::vector<Grant>& grants) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/etc/ld.so.conf.d", error)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with('/')) grants.push_back({line, FileAccess::kRead});
    }
  }
}

void allow_nodes(std::vector<Grant>& grants) {
  for (const auto* const node : kNodes) grants.push_back({node, FileAccess::kDevice});
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    if (entry.path().filename().string().starts_with(kNvidiaNodes)) {
      grants.push_back({entry.path().string(), FileAccess::kDevice});
    }
  }
}

std::string home() {
  if (const char* const home = variable("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* const entry = ::getpwuid(::geteuid());  // NOLINT(concurrency-mt-unsafe): ditto
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "";
}

void keep_folder(std::vector<Grant>& grants, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) grants.push_back({path, FileAccess::kKeepFiles});
}

// Without them shaders are compiled at every load, which takes up to 20 s on a software device.
void allow_caches(std::vector<Grant>& grants, const std::vector<std::string>& devices) {
  const auto own = home();
  const char* const mesa = variable("MESA_SHADER_CACHE_DIR");
  const char* const xdg = variable("XDG_CACHE_HOME");
  std::string caches = own.empty() ? "" : own + "/.cache";
  if (xdg != nullptr && *xdg != '\0') caches = xdg;
  if (any_named(devices, "Vulkan")) {
    const std::string root = mesa != nullptr && *mesa != '\0' ? mesa : caches;
    if (!root.empty()) {
      ::setenv("MESA_SHADER_CACHE_DIR", root.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): ditto
      keep_folder(grants, root + "/mesa_shader_cache");
      keep_folder(grants, root + "/mesa_shader_cache_db");
    }
  }
  if (::access("/dev/nvidiactl", F_OK) != 0) return;
  if (!caches.empty()) keep_folder(grants, caches + "/nvidia");
  if (const char* const cuda = variable("CUDA_CACHE_PATH"); cuda != nullptr && *cuda != '\0') {
    keep_folder(grants, cuda);
  } else if (!own.empty()) {
    keep_folder(grants, own + "/.nv/ComputeCache");
  }
}

}  // namespace

std::vector<Grant> device_grants(const std::vector<std::string>& devices) {
  std::vector<Grant> grants;
  if (devices.empty()) return grants;
  for (const auto* const path : kReadable) grants.push_back({path, FileAccess::kRead});
  allow_library_folders(grants);
  allow_nodes(grants);
  if (any_named(devices, "Vulkan")) allow_vulkan_drivers(grants);
  allow_caches(grants, devices);
  return grants;
}

}  // namespace berth::worker
