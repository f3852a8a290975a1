#include "supervisor/device_lister.h"

#include <utility>

#include "supervisor/memory/device_list.h"

namespace berth {

WorkerDeviceLister::WorkerDeviceLister(Parts parts) : parts_(std::move(parts)) {}
WorkerDeviceLister::~WorkerDeviceLister() = default;

void WorkerDeviceLister::list(std::function<void(Devices)> done) {
  if (run_ && !run_->over()) {
    parts_.clock.post([weak = std::weak_ptr(run_), done = std::move(done)] {
      if (!weak.expired()) done(fail(Reason::kInternal, "An earlier one is not gone yet."));
    });
    return;
  }
  run_ = std::make_shared<WorkerQuestion>(
      parts_, std::vector<std::string>{"--devices"},
      [done = std::move(done)](const Result<std::string>& text) {
        text ? done(memory::find_device_list(*text)) : done(fail(text.error()));
      });
  run_->begin();
}

}  // namespace berth
