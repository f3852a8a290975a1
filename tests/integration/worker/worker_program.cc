#include "tests/integration/worker/worker_process.h"

namespace berth::worker {

const char* worker_program() {
  return BERTH_WORKER;
}

}  // namespace berth::worker
