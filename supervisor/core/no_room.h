#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/result.h"

namespace berth::core {

// Why there is no memory for a model now.
struct NoRoom {
  std::string model;
  MemoryShortage memory;
  // Who has what is missing, where one model has it. Its job is the idle work that made it
  // resident.
  std::optional<HolderInfo> holder{};
  // Whether the holder has a process now: what was there a moment ago explains nothing (I11).
  bool holder_resident = false;
  // By when the job has given way to a client, at the latest (the stop ladder's bound).
  std::chrono::milliseconds gives_way_within{};
  std::optional<double> retry_after_seconds{};
};

// The refusal in the words for an entitled client (I11): what is missing; and, where the server's
// own idle work has it, on which model, whether that is loading, which job for how long, that it is
// not the size of the request, and how it ends. Without a resident holder it names no model, and
// without a job no job (I13). for_caller() cuts it for the others (I12).
Error no_room_error(const NoRoom& what, WallTime now);

}  // namespace berth::core
