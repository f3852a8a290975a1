#include "supervisor/residency/room_refusal.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "common/units.h"
#include "supervisor/core/no_room.h"

namespace berth::residency {
namespace {

// How long a pin or a stuck process is likely to stay at least; nothing tells better.
constexpr double kLongWait = 30;

MemoryShortage shortage(const core::Refuse& refuse, const core::Domains& domains) {
  MemoryShortage memory;
  if (refuse.domain < domains.size()) memory.domain = domains[refuse.domain].id;
  memory.needed_bytes = refuse.needed[refuse.domain];
  memory.limit_bytes = refuse.limit[refuse.domain];
  memory.available_bytes = refuse.available[refuse.domain];
  memory.deficit_bytes = refuse.deficit[refuse.domain];
  return memory;
}

Error never_fits(const std::string& model, MemoryShortage memory) {
  std::string message = model + " can never fit: it needs " + format_bytes(memory.needed_bytes) +
                        " of " + memory.domain + ", which may give " +
                        format_bytes(memory.limit_bytes) + ", " +
                        format_bytes(memory.deficit_bytes) + " too little.";
  if (memory.would_fit) {
    message += " A window of " + std::to_string(memory.would_fit->context) + " tokens with " +
               std::to_string(memory.would_fit->sequences) + " sequences would fit.";
  }
  ErrorExtras extras;
  extras.memory = std::move(memory);
  return {Reason::kInsufficientMemory, std::move(message), std::move(extras)};
}

Error device_missing(const std::string& model, const core::Refuse& refuse, MemoryShortage memory) {
  ErrorExtras extras;
  extras.retry_after_seconds = kLongWait;
  if (!refuse.needed.empty()) extras.memory = std::move(memory);
  std::string names;
  for (const std::string& device : refuse.devices) {
    names += (names.empty() ? "" : ", ") + device;
  }
  return {Reason::kNoRoom,
          "The device that " + model + " is to run on is not there: " + names +
              ". `berth doctor` shows the devices that are.",
          std::move(extras)};
}

}  // namespace

Error room_refusal(const std::string& model, const core::Refuse& refuse,
                   const core::Snapshot& snapshot, const std::optional<WouldFit>& would_fit) {
  MemoryShortage memory = shortage(refuse, snapshot.domains);
  memory.would_fit = would_fit;
  switch (refuse.why) {
    case core::RefuseWhy::kNeverFits:
      return never_fits(model, std::move(memory));
    case core::RefuseWhy::kDeviceMissing:
      return device_missing(model, refuse, std::move(memory));
    case core::RefuseWhy::kPinned:
    case core::RefuseWhy::kStuck:
    case core::RefuseWhy::kForeign:
      break;
  }
  core::NoRoom what;
  what.model = model;
  what.memory = std::move(memory);
  what.retry_after_seconds = kLongWait;
  if (refuse.why == core::RefuseWhy::kForeign) {
    what.retry_after_seconds =
        std::max(1.0, std::chrono::duration<double>(snapshot.policy.foreign_wait).count());
  }
  if (!refuse.models.empty()) {
    const bool stuck = refuse.why == core::RefuseWhy::kStuck;
    what.holder = HolderInfo{refuse.models.front(), stuck ? "stuck" : "pinned"};
    what.holder_resident = true;
  }
  return core::no_room_error(what, {});
}

}  // namespace berth::residency
