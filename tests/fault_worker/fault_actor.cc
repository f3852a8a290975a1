#include "tests/fault_worker/fault_actor.h"

#include <unistd.h>

#include <string>
#include <thread>

#include "tests/fault_worker/fault_deeds.h"

namespace berth::fault {

void Actor::live(Side& side) {
  run(Phase::kStart, side, nullptr);
  if (const std::string problem = side.listen(); !problem.empty()) {
    write_all(STDERR_FILENO, "fault_worker: " + problem + "\n");
    ::_exit(1);
  }
  run(Phase::kLoad, side, nullptr);
  if (told_failed_) {
    side.settle_failure();
    side.end();
    ::_exit(1);
  }
  if (!told_ready_) side.ready();
  run(Phase::kReady, side, nullptr);
}

void Actor::run(Phase phase, Side& side, Answer* answer) {
  for (const Order& order : script_.of(phase)) {
    if (order.beside) {
      std::thread([this, order, &side] { perform(order, side, nullptr); }).detach();
    } else {
      perform(order, side, answer);
    }
  }
}

void Actor::perform(const Order& order, Side& side, Answer* answer) {
  switch (order.kind) {
    case OrderKind::kExit:
      ::_exit(static_cast<int>(order.number));
    case OrderKind::kSignal:
      die_by(static_cast<int>(order.number));
    case OrderKind::kStall:
      stall();
    case OrderKind::kPrint:
      return write_all(STDERR_FILENO, order.text);
    case OrderKind::kPrintOut:
      return write_all(STDOUT_FILENO, order.text);
    case OrderKind::kLog:
      return copy_to_stderr(order.name);
    case OrderKind::kFlood:
      return flood(order.number);
    case OrderKind::kSleep:
      return sleep_for(order.time);
    case OrderKind::kWait:
      return wait_for_file(order.name);
    case OrderKind::kTouch:
      return touch(order.name);
    case OrderKind::kRead:
      return read_slowly(file_, order.rate, order.time);
    case OrderKind::kBurn:
      return burn(order.number, order.time);
    case OrderKind::kLeak:
      return leak(order.rate, order.number);
    case OrderKind::kSpawn:
      return spawn(order);
    case OrderKind::kIgnoreTerm:
      ignores_term_ = true;
      return;
    case OrderKind::kIgnoreStdin:
      ignores_stdin_ = true;
      return;
    case OrderKind::kProgress:
    case OrderKind::kFail:
    case OrderKind::kReady:
    case OrderKind::kCloseControl:
    case OrderKind::kHeartbeats:
    case OrderKind::kFreeze:
    case OrderKind::kSay:
    case OrderKind::kHold:
    case OrderKind::kSet:
      return tell(order, side, answer);
  }
}

void Actor::tell(const Order& order, Side& side, Answer* answer) {
  if (order.kind == OrderKind::kProgress) side.progress(order.name, order.fraction);
  if (order.kind == OrderKind::kCloseControl) side.close_control();
  if (order.kind == OrderKind::kHeartbeats) side.heartbeats(order.on);
  if (order.kind == OrderKind::kFreeze) side.freeze(order.on);
  if (order.kind == OrderKind::kSet) side.set(order);
  if (order.kind == OrderKind::kSay && answer != nullptr) answer->say(order.number);
  if (order.kind == OrderKind::kHold && answer != nullptr) answer->hold();
  if (order.kind == OrderKind::kReady) {
    told_ready_ = true;
    side.ready();
  }
  if (order.kind == OrderKind::kFail) {
    told_failed_ = true;
    side.fail(order.name, order.text);
  }
}

}  // namespace berth::fault
