#include "worker/service/process_limits.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>

namespace berth::worker {

void limit_own_process() {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::umask(S_IRWXG | S_IRWXO);
  ::setenv("GGML_NO_BACKTRACE", "1", 1);  // NOLINT(concurrency-mt-unsafe): no other thread yet
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace berth::worker
