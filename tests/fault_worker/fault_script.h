#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace berth::fault {

// What a fault worker is told to do (L28), as a text:
//
//   # berth fault script
//   start: sleep 200ms            before it listens
//   load:  progress weights 0.5   once it listens
//          print Traceback (most recent call last):\n
//          stall
//   ready:   …                    once it has said Ready
//   request: …                    at each request, before what is left of the answer
//   term:    …                    at SIGTERM, before it exits
//
// One order a line; a line without a phase belongs to the phase of the line before. After the
// orders of `load` comes `ready` by itself, unless one of them was `ready` or `fail`; after those
// of a failed load the worker exits with status 1 as berth-worker does. `& ORDER` runs beside those
// that follow. Empty lines and those that begin with # mean nothing.

enum class Phase : std::uint8_t { kStart, kLoad, kReady, kRequest, kTerm };
inline constexpr std::size_t kPhases = 5;

enum class OrderKind : std::uint8_t {
  kExit,          // exit STATUS
  kSignal,        // signal NAME | NUMBER: dies by it
  kPrint,         // print TEXT: to stderr, with \n \r \t \\ \e \0 \xHH, nothing added
  kPrintOut,      // print-out TEXT: to stdout
  kLog,           // log FILE: to stderr, as it is
  kFlood,         // flood BYTES: lines to stderr
  kSleep,         // sleep TIME
  kWait,          // wait FILE: until it is there
  kTouch,         // touch FILE: to tell a test that this point is reached
  kStall,         // stall: nothing moves any more
  kRead,          // read BYTES_PER_SECOND TIME: the model's file, from storage where it can be
  kBurn,          // burn PERCENT TIME: of one core
  kLeak,          // leak BYTES_PER_SECOND BYTES: memory that is touched and kept
  kSpawn,         // spawn COUNT [ignore-term] [session] [orphan]: children that do nothing
  kProgress,      // progress PHASE FRACTION
  kFail,          // fail CLASS REASON: LoadFailed
  kReady,         // ready
  kCloseControl,  // close-control: its end of the stream, and goes on living
  kHeartbeats,    // heartbeats on | off
  kFreeze,        // freeze on | off: heartbeats whose progress stands still
  kSay,           // say COUNT: so many tokens of the answer (request)
  kHold,          // hold: until the client gives up (request)
  kIgnoreTerm,    // ignore-term: SIGTERM does nothing from now on
  kIgnoreStdin,   // ignore-stdin: goes on when its supervisor is gone
  kSet,           // set text | tokens | token-every | window | sequences VALUE
};

struct Order {
  OrderKind kind = OrderKind::kStall;
  bool beside = false;  // in a thread of its own
  int line = 0;
  std::string name;          // a phase, a class, a file, a setting
  std::string text;          // what is printed, a reason, a setting's value
  std::uint64_t number = 0;  // a status, signal, count, percent, or bytes
  std::uint64_t rate = 0;    // bytes per second
  Duration time{};
  float fraction = 0;
  bool on = false;
  bool ignores_term = false;
  bool own_session = false;
  bool orphan = false;
};

using Orders = std::vector<Order>;

struct Script {
  std::array<Orders, kPhases> phases;
  [[nodiscard]] const Orders& of(Phase phase) const {
    return phases[static_cast<std::size_t>(phase)];
  }
};

inline constexpr std::string_view kScriptBegin = "# berth fault script";
inline constexpr std::string_view kScriptEnd = "# end";

// Errors: kInvalidArgument, with the line's number.
Result<Script> parse_script(std::string_view text);

// The script of a model: the file MODEL.fault beside it, else a text in the first mebibyte of the
// model itself (as a string of its metadata) from kScriptBegin to kScriptEnd, a NUL or the file's
// end. Nothing where there is neither.
std::optional<std::string> find_script(const std::string& model);

// The number of "SEGV", "SIGSEGV" or "11".
std::optional<int> signal_number(std::string_view name);

}  // namespace berth::fault
