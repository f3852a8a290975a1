#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/memory/device_reading.h"

namespace berth::memory {

// Looks at the devices of this machine. Core strand.
class DeviceProbe {
 public:
  using Readings = Result<std::vector<DeviceReading>>;

  DeviceProbe() = default;
  DeviceProbe(const DeviceProbe&) = delete;
  DeviceProbe& operator=(const DeviceProbe&) = delete;
  virtual ~DeviceProbe() = default;  // no answer comes after it

  // Answers once on the core strand, never from within the call, and in a bounded time. Errors:
  // kNotFound: there is no driver to ask; kDeadline: it does not answer; kInternal.
  virtual void read(std::function<void(Readings)> done) = 0;
};

// The devices by a call that blocks and may hang for ever, as a driver does: on a thread of its
// own, which is left to itself where it hangs. Until that comes back no other one is begun, and all
// who ask get kDeadline.
class ThreadedDeviceProbe final : public DeviceProbe {
 public:
  using Read = std::function<Readings()>;

  // `open` gives the call; it is called on the thread, too, and again at the next read where it
  // failed. `deadline`: of one read.
  ThreadedDeviceProbe(Clock& clock, std::function<Result<Read>()> open,
                      Duration deadline = std::chrono::seconds(2));
  ThreadedDeviceProbe(const ThreadedDeviceProbe&) = delete;
  ThreadedDeviceProbe& operator=(const ThreadedDeviceProbe&) = delete;
  ~ThreadedDeviceProbe() override;

  void read(std::function<void(Readings)> done) override;

 private:
  class Thread;
  struct Waiting;

  void give_up(std::uint64_t asked);

  Clock& clock_;
  const Duration deadline_;
  const std::shared_ptr<Thread> thread_;
  const std::shared_ptr<Waiting> waiting_;
};

// NVIDIA's devices (nvml.h).
std::unique_ptr<DeviceProbe> make_nvml_probe(Clock& clock);

}  // namespace berth::memory
