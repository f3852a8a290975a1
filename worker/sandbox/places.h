#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth::worker {

// What a worker works with, by name. All else stays out of its reach.
struct SandboxPlaces {
  std::vector<std::string> models;   // files; of a split model the first
  std::string socket_directory;      // names in it may be removed
  std::string template_program;      // executed; empty: none
  std::vector<std::string> devices;  // ggml's names; empty: no device node is open to it
  std::vector<std::string> granted;  // folders whose files it may read, write, make and remove
};

// A file or folder, and what may be done there (FileAccess).
struct Grant {
  std::string path;
  std::uint64_t access = 0;
};

// Main thread, before any other. Nothing of it need be there.

// What every worker needs: the places above, libraries (those of libllama, and of the system for
// the template program), the program's loader, and what the C library and OpenMP read of /proc and
// /sys. /proc/self is not among them.
std::vector<Grant> worker_grants(const SandboxPlaces& places);

// What drivers of devices need besides: device nodes, what /proc and /sys say of them, descriptions
// of drivers (also those that VK_DRIVER_FILES and the like name, with the libraries they name), and
// caches of compiled code, whose folders are made. Sets MESA_SHADER_CACHE_DIR for a Vulkan device,
// because Mesa would look for a home in files that are out of reach.
std::vector<Grant> device_grants(const std::vector<std::string>& devices);

// `path`, and the further files of a split model, as they would be named.
std::vector<std::string> with_shards(const std::string& path);

// The loader that an ELF program of 64 bits names; empty: none.
std::string loader_of(const std::string& program);

// The parts between colons; empty ones are left out.
std::vector<std::string> split_paths(const char* list);

}  // namespace berth::worker
