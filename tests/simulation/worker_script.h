#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/rpc/forward.h"

namespace berth::sim {

// What becomes of a simulated worker.
enum class Fate : std::uint8_t {
  kServes,
  kPrepareError,  // its launch cannot be prepared (file gone)
  kLaunchError,   // execve fails
  kExitsAtOnce,   // before it listens
  kExitsLoading,  // after `fate_after` of its load
  kNeverListens,
  kNeverReady,
  kSaysLoadFailed,
  kSaysLoadFailedAndExits,  // both at once: the exit may be seen first
  kDropsStream,             // its control stream ends, it lives on
  kDiesReady,               // `fate_after` its being ready
  kDiesBusy,                // `fate_after` the start of a generation
};
std::string_view fate_name(Fate fate);

// Something that a worker writes to its log.
struct Print {
  Duration after{};  // its launch
  std::string text;
};

// How a simulated worker behaves, from its launch to its end.
struct WorkerScript {
  Fate fate = Fate::kServes;
  Duration fate_after = std::chrono::milliseconds(50);
  core::ExitStatus exit = core::Exited{1};  // when it ends by itself
  std::string failure_class = "permanent";
  std::string reason = "unknown model architecture: 'zebra'";
  std::vector<std::string> log_tail = {"error loading model: unknown model architecture: 'zebra'"};
  // Whether its load is seen to compute; only its reports of progress show that it lives else.
  bool computes = true;
  // While it loads it is asked whether it is ready so often, and writes a line of each to its log.
  Duration probed_every = {};
  // Its work stands still from a generation's first token on, and its heart beats.
  bool wedges = false;
  bool log_never_read = false;  // the answer for its log's tail never comes
  // Of kLaunchError: the machine had too few processes; else its program is not there.
  bool launch_lacks_processes = false;
  // The kernel's log tells that memory ran out, whatever it died of.
  bool kernel_tells_of_oom = false;

  Duration prepare = std::chrono::milliseconds(1);
  Duration listen = std::chrono::milliseconds(10);
  Duration load = std::chrono::milliseconds(200);
  std::uint32_t progress_steps = 5;
  std::uint32_t sequences = 2;
  std::uint32_t window = 4096;
  std::uint32_t threads = 4;
  std::uint32_t longest_token_bytes = 16;

  std::vector<std::string> tokens = {"Hello", ",", " world", "."};
  Duration token_every = std::chrono::milliseconds(10);
  // Of its answers to requests that are passed on as they came, whose bodies are the tokens.
  rpc::ForwardHead head = {200, "application/json", ""};

  Duration term_to_exit = std::chrono::milliseconds(20);
  bool ignores_term = false;
  Duration kill_to_exit = std::chrono::milliseconds(2);  // over 5 s: unkillable for a while
  Duration exit_to_notice = {};     // between the death and on_exit(), and the stream's end
  Duration memory_comes_back = {};  // after its death, of devices; over 5 s: too late to be seen
  bool has_stream = true;           // false: as a program that is not ours

  std::vector<Print> prints = {};  // in the order of their time; the last words come at the exit
  std::string last_words = {};     // when it ends by itself
};

}  // namespace berth::sim
