#include "supervisor/admin/resident_memory.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace berth::admin {
namespace {

constexpr std::size_t kMostKept = 1024;

struct Known {
  SteadyTime when{};
  std::uint64_t bytes = 0;
};

struct Memory {
  std::mutex mutex;
  std::map<pid_t, Known> known;
};

}  // namespace

std::function<std::uint64_t(pid_t)> remembered(const Clock& clock, Duration age,
                                               std::function<std::uint64_t(pid_t)> read) {
  return [&clock, age, read = std::move(read), memory = std::make_shared<Memory>()](pid_t pid) {
    const SteadyTime now = clock.now();
    {
      const std::lock_guard lock(memory->mutex);
      const auto found = memory->known.find(pid);
      if (found != memory->known.end() && now - found->second.when < age) {
        return found->second.bytes;
      }
    }
    const std::uint64_t bytes = read(pid);
    const std::lock_guard lock(memory->mutex);
    if (memory->known.size() >= kMostKept) {
      std::erase_if(memory->known, [&](const auto& one) { return now - one.second.when >= age; });
    }
    if (memory->known.size() < kMostKept) memory->known[pid] = {now, bytes};
    return bytes;
  };
}

}  // namespace berth::admin
