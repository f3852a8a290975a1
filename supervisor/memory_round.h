#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "common/clock.h"
#include "supervisor/memory/device_probe.h"
#include "supervisor/memory/host_reading.h"
#include "supervisor/process/async.h"

namespace berth {

// Reads the host, on the pool, and the devices side by side, in a bounded time. Core strand.
class MemoryRound {
 public:
  // Of a look at the host: /proc hangs where a process's memory is locked for long.
  static constexpr Duration kHostDeadline = std::chrono::seconds(3);

  struct Parts {
    Clock& clock;
    process::RunBlocking run_blocking;
    std::function<memory::HostReading()> read_host;  // blocks; never two at a time
    memory::DeviceProbe& probe;
  };
  struct Found {
    std::optional<memory::HostReading> host{};  // absent: late, or an earlier look is still out
    std::optional<memory::DeviceProbe::Readings> devices{};  // absent: they were not asked for
  };

  explicit MemoryRound(Parts parts) : parts_(std::move(parts)) {}
  MemoryRound(const MemoryRound&) = delete;
  MemoryRound& operator=(const MemoryRound&) = delete;
  ~MemoryRound();

  // Answers once, never from within the call. One at a time.
  void run(bool with_devices, std::function<void(Found)> done);

 private:
  void on_host(std::uint64_t round, std::optional<memory::HostReading> host);
  void end_part();

  Parts parts_;
  std::uint64_t number_ = 0;
  bool looking_ = false;  // a thread is at the host
  int out_ = 0;           // parts of this round
  bool host_out_ = false;
  Found found_;
  std::function<void(Found)> done_;
  Timer deadline_;
  const std::shared_ptr<MemoryRound*> self_ = std::make_shared<MemoryRound*>(this);
};

}  // namespace berth
