#include "common/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <set>

#include "common/fd.h"

namespace berth {
namespace {

constexpr int kMaxCpus = 4096;
constexpr std::size_t kLineBytes = 256;

// The list of hyper-threads of the core that `cpu` belongs to: the same text for each of them.
std::string siblings(const std::string& sysfs, int cpu) {
  const auto path = sysfs + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::array<char, kLineBytes> line{};
  const auto size = ::read(file.get(), line.data(), line.size());
  return size > 0 ? std::string(line.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

std::uint32_t usable_cores(const std::string& sysfs) {
  cpu_set_t* const set = CPU_ALLOC(kMaxCpus);
  if (set == nullptr) return 1;
  const auto bytes = CPU_ALLOC_SIZE(kMaxCpus);
  std::set<std::string> cores;
  if (::sched_getaffinity(0, bytes, set) == 0) {
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (!CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) continue;
      auto core = siblings(sysfs, cpu);
      cores.insert(core.empty() ? std::to_string(cpu) : std::move(core));
    }
  }
  CPU_FREE(set);
  return cores.empty() ? 1 : static_cast<std::uint32_t>(cores.size());
}

}  // namespace berth
