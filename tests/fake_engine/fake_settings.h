#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "worker/engine/engine.h"

namespace berth::worker {

// What happens at a point where a FakeEngine is told to fail.
enum class FakeFailure : std::uint8_t {
  kError,  // it says so, and goes on
  kHang,   // it waits for ever, and looks at its abort check
  kStuck,  // it waits for ever, and looks at nothing
  kCrash,  // SIGABRT
  kExit,   // exit status 3
};

// Everything that a FakeEngine does. A value of 0 is "none" or "as fast as it can" unless said.
struct FakeSettings {
  // Its facts.
  std::uint32_t sequences = 1;
  std::uint32_t window = 256;
  std::uint32_t cells = 0;  // 0: one window
  std::uint32_t batch = 64;
  std::uint32_t threads = 1;
  Purpose purpose = Purpose::kGenerate;
  std::uint32_t embedding_size = 0;
  std::string pooling = "mean";
  bool shares_cells = false;
  std::string chat_template;
  std::vector<std::string> control_tokens;
  std::uint32_t layers = 4;

  // What it says: an answer depends on this number, every token before it, and the sampler's seed.
  std::uint64_t seed = 0;
  bool endless = false;  // it never ends an answer by itself

  // How fast. A batch costs its tokens without output / prompt_speed, and once 1 / generation_speed
  // where it has outputs, as on a machine that is bound by its memory.
  double prompt_speed = 0;      // tokens per second
  double generation_speed = 0;  // ditto
  Duration load{};              // of the load in all

  // Reported in its facts, and where `touch_memory` also allocated and written.
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t working_bytes = 0;
  bool touch_memory = false;

  // Most tokens of a proposal; so many of a hundred of them are right.
  std::uint32_t draft_tokens = 0;
  std::uint32_t draft_right_percent = 100;
  double draft_speed =
      0;  // tokens that the draft model reads per second; its proposals cost nothing

  // Failures. A load fails in its phase (starting | weights | context); a batch by its number,
  // from 1; 0 = none.
  std::string load_failure_phase;
  FakeFailure load_failure = FakeFailure::kError;
  std::string load_failure_class = "permanent";
  std::string load_failure_reason = "the fake model says so";
  std::uint64_t failing_batch = 0;
  FakeFailure batch_failure = FakeFailure::kError;
};

// The first line of a fake model's settings, and the line that may end them before the end of the
// file; it ends with a line feed, a NUL or the file.
inline constexpr std::string_view kFakeModelBegin = "# berth fake model";
inline constexpr std::string_view kFakeModelEnd = "# end";

// Changes `settings` as `text` says: lines `key = value`, named as the members above (durations
// as `load_ms`), `control_token` once for each; empty lines and those that begin with # mean
// nothing. Errors: kInvalidArgument, with the line's number.
Status read_fake_settings(std::string_view text, FakeSettings& settings);

// The settings within a model's file: what stands between kFakeModelBegin and kFakeModelEnd, where
// the former is in the first mebibyte. So a file can be a model to somebody else as well, with the
// settings as a text in its metadata. Nothing where there are none.
std::optional<std::string_view> find_fake_settings(std::string_view file);

}  // namespace berth::worker
