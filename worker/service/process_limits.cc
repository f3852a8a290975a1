#include "worker/service/process_limits.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace berth::worker {
namespace {

constexpr const char* kSpinVariable = "GOMP_SPINCOUNT";
constexpr const char* kSpinCount = "5000";

}  // namespace

void limit_own_process() {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::umask(S_IRWXG | S_IRWXO);
  ::setenv("GGML_NO_BACKTRACE", "1", 1);  // NOLINT(concurrency-mt-unsafe): no other thread yet
  std::signal(SIGPIPE, SIG_IGN);
}

void restart_with_short_spin(char** argv) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread yet
  if (std::getenv(kSpinVariable) != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) {
    return;
  }
  ::setenv(kSpinVariable, kSpinCount, 1);
  // NOLINTEND(concurrency-mt-unsafe)
  ::execv("/proc/self/exe", argv);  // where it fails, work goes on, only slower
}

}  // namespace berth::worker
