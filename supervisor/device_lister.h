#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/result.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/worker_question.h"

namespace berth {

// Lists the devices that libllama could use here. Core strand.
class DeviceLister {
 public:
  using Devices = Result<std::vector<core::ListedDevice>>;

  DeviceLister() = default;
  DeviceLister(const DeviceLister&) = delete;
  DeviceLister& operator=(const DeviceLister&) = delete;
  virtual ~DeviceLister() = default;  // no answer comes after it

  // Answers once, never from within the call, and in a bounded time. One at a time. Errors:
  // kDeadline, kInternal with what went wrong.
  virtual void list(std::function<void(Devices)> done) = 0;
};

// By `berth-worker --devices`, in a process of its own that is gone before the answer, unless it
// cannot be killed: no process of ours keeps a device open (M2). Owns that process. Lives as long
// as the program.
class WorkerDeviceLister final : public DeviceLister {
 public:
  using Parts = WorkerQuestion::Parts;

  explicit WorkerDeviceLister(Parts parts);
  WorkerDeviceLister(const WorkerDeviceLister&) = delete;
  WorkerDeviceLister& operator=(const WorkerDeviceLister&) = delete;
  ~WorkerDeviceLister() override;

  void list(std::function<void(Devices)> done) override;

 private:
  const Parts parts_;
  std::shared_ptr<WorkerQuestion> run_;  // the last one
};

}  // namespace berth
