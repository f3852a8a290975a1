#include "supervisor/memory_round.h"

#include <utility>

namespace berth {

MemoryRound::~MemoryRound() {
  *self_ = nullptr;
}

void MemoryRound::run(bool with_devices, std::function<void(Found)> done) {
  done_ = std::move(done);
  found_ = {};
  out_ = with_devices ? 2 : 1;
  host_out_ = true;
  const std::uint64_t round = ++number_;
  if (with_devices) {
    parts_.probe.read([self = self_](memory::DeviceProbe::Readings readings) {
      if (*self == nullptr) return;
      (*self)->found_.devices = std::move(readings);
      (*self)->end_part();
    });
  }
  if (std::exchange(looking_, true)) {
    parts_.clock.post([self = self_, round] {
      if (*self != nullptr) (*self)->on_host(round, std::nullopt);
    });
    return;
  }
  deadline_ =
      parts_.clock.sleep_for(kHostDeadline, [this, round] { on_host(round, std::nullopt); });
  parts_.run_blocking([self = self_, round, &clock = parts_.clock, read = parts_.read_host] {
    clock.post([self, round, host = read()]() mutable {
      if (*self == nullptr) return;
      (*self)->looking_ = false;
      (*self)->on_host(round, std::move(host));
    });
  });
}

void MemoryRound::on_host(std::uint64_t round, std::optional<memory::HostReading> host) {
  if (round != number_ || !std::exchange(host_out_, false)) return;
  deadline_.reset();
  found_.host = std::move(host);
  end_part();
}

void MemoryRound::end_part() {
  if (--out_ > 0) return;
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(found_));
}

}  // namespace berth
