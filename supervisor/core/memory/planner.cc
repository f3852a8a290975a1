#include "supervisor/core/memory/planner.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/core/memory/plan_book.h"
#include "supervisor/core/memory/plan_option.h"
#include "supervisor/core/memory/plan_refusal.h"

namespace berth::core {
namespace {

enum class Rank : std::uint8_t {
  kFits,
  kShrinkBank,
  kLeaving,
  kMakeRoom,
  kClosing,
  kGrace,
  kClients,
  kOlder,
  kForeign,
  kForeignRefused,
  kStuck,
  kPinned,
  kNever,
  kMissing,
};

Rank rank_of(ParkFor what) {
  switch (what) {
    case ParkFor::kLeaving:
      return Rank::kLeaving;
    case ParkFor::kClosing:
      return Rank::kClosing;
    case ParkFor::kGrace:
      return Rank::kGrace;
    case ParkFor::kClients:
    case ParkFor::kIdleRoom:
      return Rank::kClients;
    case ParkFor::kOlder:
      return Rank::kOlder;
    case ParkFor::kForeign:
      return Rank::kForeign;
  }
  return Rank::kOlder;
}

Rank rank_of(RefuseWhy why) {
  switch (why) {
    case RefuseWhy::kDeviceMissing:
      return Rank::kMissing;
    case RefuseWhy::kNeverFits:
      return Rank::kNever;
    case RefuseWhy::kPinned:
      return Rank::kPinned;
    case RefuseWhy::kStuck:
      return Rank::kStuck;
    case RefuseWhy::kForeign:
      return Rank::kForeignRefused;
  }
  return Rank::kMissing;
}

// How good an answer is; smaller is better.
struct Score {
  Rank rank = Rank::kMissing;
  bool split = false;
  double cost = 0;          // seconds of evictions
  std::uint64_t bytes = 0;  // left over, or missing

  auto operator<=>(const Score&) const = default;  // NOLINT(modernize-use-nullptr): there is none
};

// What is left where the layers are: the host counts only where it is the only domain.
std::uint64_t left_over(const Fits& fits) {
  DomainBytes left = fits.left;
  const bool elsewhere = std::ranges::any_of(
      fits.at.placement.shares, [](const auto& share) { return share.device != kHostDomain; });
  if (elsewhere) left[kHostDomain] = 0;
  return sum_of(left);
}

double cost_of(const std::vector<Victim>& victims) {
  double seconds = 0;
  for (const Victim& victim : victims) seconds += victim.cost_seconds;
  return seconds;
}

struct Scorer {
  Score operator()(const Fits& it) const { return {Rank::kFits, it.at.split(), 0, left_over(it)}; }
  Score operator()(const ShrinkBank& it) const {
    return {Rank::kShrinkBank, it.at.split(), 0, sum_of(it.bank)};
  }
  Score operator()(const Evict& it) const {
    return {Rank::kMakeRoom, it.at.split(), cost_of(it.victims), sum_of(it.missing)};
  }
  Score operator()(const PreEmpt& it) const {
    return {Rank::kMakeRoom, it.at.split(), cost_of(it.victims), sum_of(it.missing)};
  }
  Score operator()(const Park& it) const {
    return {rank_of(it.what), it.at.split(), 0, sum_of(it.missing)};
  }
  Score operator()(const Refuse& it) const {
    return {rank_of(it.why), it.at.split(), 0, sum_of(it.deficit)};
  }
};

// The instances that it closes or takes away.
struct Takes {
  std::vector<Uuid> operator()(const Park& it) const { return it.close; }
  std::vector<Uuid> operator()(const Evict& it) const { return ids(it.victims); }
  std::vector<Uuid> operator()(const PreEmpt& it) const { return ids(it.victims); }
  std::vector<Uuid> operator()(const auto& /*it*/) const { return {}; }

 private:
  static std::vector<Uuid> ids(const std::vector<Victim>& victims) {
    std::vector<Uuid> all;
    for (const Victim& victim : victims) all.push_back(victim.id);
    return all;
  }
};

}  // namespace

Decision plan(const Snapshot& snapshot, const Need& need) {
  const PlanBook book = plan_book(snapshot, need);
  if (need.options.empty() || !need.missing_devices.empty()) return refuse_missing(book);
  std::optional<Decision> best;
  Score best_score;
  for (const PlacementOption& option : need.options) {
    Decision decision = plan_option(book, option);
    const Score score = std::visit(Scorer(), decision);
    if (best && !(score < best_score)) continue;
    best = std::move(decision);
    best_score = score;
  }
  return *std::move(best);
}

std::vector<Closer> who_would_close(Snapshot snapshot, const std::vector<Need>& needs,
                                    const std::vector<Uuid>& reopened, bool proving) {
  const auto is_reopened = [&](const Uuid& id) {
    return std::ranges::find(reopened, id) != reopened.end();
  };
  std::vector<std::string> served;
  for (Entry& entry : snapshot.entries) {
    if (!is_reopened(entry.id)) continue;
    entry.state = EntryState::kReady;
    served.push_back(entry.model);
    for (const Need& need : needs) {
      if (need.model != entry.model) continue;
      ++(need.caller == CallerClass::kIdle ? entry.soft : entry.clients);
    }
  }
  snapshot.holds.clear();
  std::vector<Closer> who;
  for (const Need& need : needs) {
    if (std::ranges::find(served, need.model) != served.end()) continue;
    const Decision decision = plan(snapshot, need);
    const auto* const park = std::get_if<Park>(&decision);
    const bool again = std::ranges::any_of(std::visit(Takes(), decision), is_reopened);
    if (again || (park != nullptr && !park->close.empty())) {
      who.push_back({.need = need, .again = again});
    }
    if (auto hold = hold_of_waiting(need, decision, proving)) {
      snapshot.holds.push_back(*std::move(hold));
    }
  }
  return who;
}

std::optional<Refuse> pin_refusal(const Snapshot& snapshot, const Need& need) {
  Snapshot pinned;
  pinned.now = snapshot.now;
  pinned.domains = snapshot.domains;
  for (Domain& domain : pinned.domains) domain.foreign = 0;
  for (const Entry& entry : snapshot.entries) {
    if (entry.pinned && entry.model != need.model) pinned.entries.push_back(entry);
  }
  const Decision decision = plan(pinned, need);
  const auto* refuse = std::get_if<Refuse>(&decision);
  return refuse ? std::optional(*refuse) : std::nullopt;
}

std::optional<Hold> hold_of(const Need& need, const Decision& decision) {
  Hold hold{.model = need.model, .since = need.since, .until = need.until};
  const auto of_room_made = [&hold](const auto& made) {
    hold.bytes = made.at.bytes;
    for (const Victim& victim : made.victims) hold.frees.push_back(victim.id);
    return hold;
  };
  if (const auto* evict = std::get_if<Evict>(&decision)) return of_room_made(*evict);
  if (const auto* pre_empt = std::get_if<PreEmpt>(&decision)) return of_room_made(*pre_empt);
  const auto* park = std::get_if<Park>(&decision);
  if (park == nullptr) return std::nullopt;
  switch (park->what) {
    case ParkFor::kLeaving:
    case ParkFor::kClosing:
    case ParkFor::kGrace:
    case ParkFor::kClients:
      break;
    case ParkFor::kOlder:
    case ParkFor::kForeign:
    case ParkFor::kIdleRoom:
      return std::nullopt;
  }
  hold.bytes = park->at.bytes;
  hold.frees = park->takes;
  return hold;
}

std::optional<Hold> hold_of_waiting(const Need& need, const Decision& decision, bool proving) {
  if (auto hold = hold_of(need, decision)) return hold;
  const auto* const fits = std::get_if<Fits>(&decision);
  const auto* const shrink = std::get_if<ShrinkBank>(&decision);
  const auto* const refuse = std::get_if<Refuse>(&decision);
  const bool may_be_ours = refuse != nullptr && refuse->why == RefuseWhy::kForeign && proving;
  if (need.caller == CallerClass::kIdle) return std::nullopt;
  if (fits == nullptr && shrink == nullptr && !may_be_ours) return std::nullopt;
  const PlacementOption& at = fits != nullptr     ? fits->at
                              : shrink != nullptr ? shrink->at
                                                  : refuse->at;
  return Hold{.model = need.model, .bytes = at.bytes, .since = need.since, .until = need.until};
}

}  // namespace berth::core
