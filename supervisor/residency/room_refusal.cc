#include <optional>
#include <string>
#include <utility>

#include "supervisor/core/memory/plan_words.h"
#include "supervisor/residency/room.h"

// What who waited is told where there is no room.
namespace berth::residency {
namespace {

// How long a pin, a stuck process or a missing device is likely to stay at least; nothing tells
// better.
constexpr double kLongWait = 30;

// Whose numbers those of a program are, and what an operator can do about them.
std::string way_out_of_command(const catalog::Model& model, const std::string& domain) {
  const bool declared = !model.settings.memory.empty();
  return (declared
              ? " Its `memory` says so: correct it, or raise the budget of "
              : " That is what its processes were seen to take: declare `memory` in its section "
                "if it takes less by now, or raise the budget of ") +
         domain + ".";
}

}  // namespace

Error Room::refusal(const catalog::Model& model, const core::Refuse& refuse,
                    const core::Snapshot& snapshot) const {
  const bool never = refuse.why == core::RefuseWhy::kNeverFits;
  const auto& would_fit = environment_.memory_access.would_fit;
  std::optional<WouldFit> fits;
  if (never && would_fit) fits = would_fit(model, snapshot);
  Error error =
      core::error_of(refuse, snapshot, {.model = model.name}, environment_.clock.wall_now(), fits);
  if (never && model.settings.kind == catalog::Kind::kCommand && error.extras->memory) {
    error.message += way_out_of_command(model, error.extras->memory->domain);
  }
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
