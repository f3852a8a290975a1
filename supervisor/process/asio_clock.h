#pragma once

#include "common/clock.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace berth::process {

// The real Clock: the kernel's clocks, and one io_context as the core strand. Owns nothing; the
// io_context must outlive it and every Timer that it made. The thread that runs the io_context is
// the core strand, so exactly one may run it. Nothing fails.
class AsioClock : public Clock {
 public:
  explicit AsioClock(boost::asio::io_context& io) : io_(io) {}

  [[nodiscard]] SteadyTime now() const override;
  [[nodiscard]] BootTime boot_now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  [[nodiscard]] Timer sleep_until(SteadyTime when, Callback callback) override;
  void post(Callback callback) override;

 private:
  boost::asio::io_context& io_;
};

}  // namespace berth::process
