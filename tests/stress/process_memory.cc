#include "tests/stress/process_memory.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace berth::stress {

ProcessMemory memory_of(pid_t pid) {
  ProcessMemory memory;
  const auto directory = "/proc/" + std::to_string(pid);
  std::ifstream status(directory + "/status");
  std::string line;
  while (std::getline(status, line)) {
    const auto read = [&](const std::string& name, std::uint64_t& to) {
      if (line.rfind(name + ":", 0) == 0) to = std::stoull(line.substr(name.size() + 1));
    };
    read("RssAnon", memory.anonymous_kib);
    read("VmHWM", memory.peak_kib);
    read("Threads", memory.threads);
  }
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/fd", ignored)) {
    if (!entry.path().empty()) ++memory.descriptors;
  }
  return memory;
}

}  // namespace berth::stress
