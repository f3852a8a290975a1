#include "supervisor/core/no_room.h"

#include <algorithm>
#include <utility>

#include "common/units.h"

namespace berth::core {
namespace {

using std::chrono::milliseconds;

// "context_probe" -> "context probe"
std::string in_words(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string shortage(const NoRoom& what) {
  return "There is no memory for " + what.model + " now: it needs " +
         format_bytes(what.memory.needed_bytes) + " of " + what.memory.domain + ", and " +
         format_bytes(what.memory.available_bytes) + " of the " +
         format_bytes(what.memory.limit_bytes) + " there are free.";
}

std::string held_by(const HolderInfo& holder, const NoRoom& what, WallTime now) {
  std::string text = " " + holder.model + " holds it and is " + in_words(holder.state);
  if (holder.job.empty()) return text + ".";
  const milliseconds since = now.time_since_epoch() - milliseconds(holder.since_unix_ms);
  text += ": the server's own idle work, a " + in_words(holder.job) +
          ", which has been at it for " +
          format_duration_human(std::max(since, milliseconds::zero())) +
          ". This is not for the size of your request. The work gives way to it";
  if (what.gives_way_within > milliseconds::zero()) {
    text += ", within " + format_duration_human(what.gives_way_within);
  }
  return text + "; ask again then.";
}

}  // namespace

Error no_room_error(const NoRoom& what, WallTime now) {
  std::string message = shortage(what);
  ErrorExtras extras;
  extras.memory = what.memory;
  extras.retry_after_seconds = what.retry_after_seconds;
  if (what.holder && what.holder_resident) {
    message += held_by(*what.holder, what, now);
    extras.holder = what.holder;
  }
  return {Reason::kNoRoom, std::move(message), std::move(extras)};
}

}  // namespace berth::core
