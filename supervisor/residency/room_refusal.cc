#include <optional>
#include <utility>

#include "supervisor/core/memory/plan_words.h"
#include "supervisor/residency/room.h"

// What who waited is told where there is no room.
namespace berth::residency {
namespace {

// How long a pin, a stuck process or a missing device is likely to stay at least; nothing tells
// better.
constexpr double kLongWait = 30;

}  // namespace

Error Room::refusal(const catalog::Model& model, const core::Refuse& refuse,
                    const core::Snapshot& snapshot) const {
  const bool never = refuse.why == core::RefuseWhy::kNeverFits;
  const auto& would_fit = environment_.memory_access.would_fit;
  std::optional<WouldFit> fits;
  if (never && would_fit) fits = would_fit(model, snapshot);
  Error error =
      core::error_of(refuse, snapshot, {.model = model.name}, environment_.clock.wall_now(), fits);
  if (never) return error;
  ErrorExtras extras = error.extras ? *error.extras : ErrorExtras();
  if (!extras.retry_after_seconds) extras.retry_after_seconds = kLongWait;
  if (!extras.holder && !refuse.models.empty()) {
    const bool stuck = refuse.why == core::RefuseWhy::kStuck;
    extras.holder = HolderInfo{refuse.models.front(), stuck ? "stuck" : "pinned"};
  }
  return {error.reason, std::move(error.message), std::move(extras)};
}

}  // namespace berth::residency
