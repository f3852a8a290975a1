#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "common/event.h"
#include "common/log.h"

namespace berth {

// Between the event hub and the log while the server starts: scripts read `server.listening` as the
// first event of standard output, so what happens before it is held back and follows it. Bounded by
// what a start can say. Called under the hub's lock.
class EarlyLog {
 public:
  explicit EarlyLog(LogWriter& log) : log_(log) {}

  void write(const Event& event) {
    if (open_) return log_.write(event);
    if (event.name != std::string_view("server.listening")) {
      held_.push_back(event);
      return;
    }
    log_.write(event);
    release();
  }

  // Where the start failed: what was held back says why.
  void release() {
    open_ = true;
    for (const Event& held : std::exchange(held_, {})) log_.write(held);
  }

 private:
  LogWriter& log_;
  bool open_ = false;
  std::vector<Event> held_;
};

}  // namespace berth
