#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/process/async.h"
#include "supervisor/process/launcher.h"

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
  static constexpr Duration kDeadline = std::chrono::seconds(5);
  static constexpr std::size_t kMostOutput = std::size_t{256} << 10U;

  struct Parts {
    Clock& clock;
    process::Launcher& launcher;
    process::OnReadable on_readable;
    std::string program;                   // absolute path of berth-worker
    std::vector<std::string> environment;  // its whole one
  };

  explicit WorkerDeviceLister(Parts parts);
  WorkerDeviceLister(const WorkerDeviceLister&) = delete;
  WorkerDeviceLister& operator=(const WorkerDeviceLister&) = delete;
  ~WorkerDeviceLister() override;

  void list(std::function<void(Devices)> done) override;

 private:
  class Run;

  Parts parts_;
  std::shared_ptr<Run> run_;  // the last one
};

}  // namespace berth
