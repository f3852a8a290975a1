#include "supervisor/programs.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace berth {
namespace {

namespace fs = std::filesystem;

fs::path own_directory() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  return failed ? fs::path() : self.parent_path();
}

std::string program_beside(const char* name) {
  const fs::path bin = own_directory();
  for (const fs::path& candidate : {bin / name, bin / "../libexec/berth" / name}) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.lexically_normal().string();
  }
  return {};
}

}  // namespace

std::string worker_program() {
  // Before any other thread: nothing changes the environment meanwhile.
  if (const char* chosen = std::getenv("BERTH_WORKER")) {  // NOLINT(concurrency-mt-unsafe)
    return chosen;
  }
  return program_beside("berth-worker");
}

std::string shim_program() {
  return program_beside("berth-shim");
}

std::string shared_file(const std::string& name) {
  const fs::path file = own_directory() / "../share/berth" / name;
  if (::access(file.c_str(), R_OK) == 0) return file.lexically_normal().string();
  return {};
}

}  // namespace berth
