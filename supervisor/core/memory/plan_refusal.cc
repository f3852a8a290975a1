#include "supervisor/core/memory/plan_refusal.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace berth::core {
namespace {

Refuse refusal(const PlanBook& book, const PlacementOption& option, RefuseWhy why,
               const DomainBytes& deficit) {
  return {.why = why,
          .at = option,
          .domain = largest_of(deficit),
          .needed = option.bytes,
          .limit = why == RefuseWhy::kNeverFits ? book.hard_limit : book.limit,
          .available = book.limit - book.charged,
          .deficit = deficit};
}

void name_blockers(const PlanBook& book, Refuse& refuse, Standing standing) {
  std::vector<std::pair<Uuid, std::string>> found;
  for (std::size_t i = 0; i < book.judged.size(); ++i) {
    const Entry& entry = book.snapshot->entries[i];
    if (book.judged[i].standing != standing) continue;
    if (at_most(entry.charge, refuse.deficit).empty()) continue;
    found.emplace_back(entry.id, entry.model);
  }
  std::ranges::sort(found);
  for (auto& [id, model] : found) {
    refuse.blockers.push_back(id);
    refuse.models.push_back(std::move(model));
  }
}

std::vector<std::string> lost_devices(const PlanBook& book, const DomainBytes& bytes) {
  std::vector<std::string> lost;
  const Domains& domains = book.snapshot->domains;
  for (std::size_t i = 0; i < kMaxDomains; ++i) {
    if (bytes[static_cast<DomainIndex>(i)] == 0) continue;
    if (i >= domains.size()) continue;
    if (domains[i].lost) lost.push_back(domains[i].id);
  }
  return lost;
}

Decision foreign(const PlanBook& book, const PlacementOption& option, const DomainBytes& deficit) {
  const Snapshot& snapshot = *book.snapshot;
  const SteadyTime ends = book.need->since + snapshot.policy.foreign_wait;
  if (ends <= snapshot.now) return refusal(book, option, RefuseWhy::kForeign, deficit);
  return Park{.at = option,
              .what = ParkFor::kForeign,
              .since = book.need->since,
              .until = std::min(ends, book.need->until),
              .again = ends,
              .missing = deficit};
}

}  // namespace

DomainBytes lacks(const DomainBytes& sum, const DomainBytes& bytes, const DomainBytes& room) {
  return only_where(sum - room, bytes);
}

Decision refuse_option(const PlanBook& book, const PlacementOption& option) {
  const DomainBytes& bytes = option.bytes;
  if (auto lost = lost_devices(book, bytes); !lost.empty()) {
    Refuse refuse =
        refusal(book, option, RefuseWhy::kDeviceMissing, lacks(bytes, bytes, book.limit));
    refuse.devices = std::move(lost);
    return refuse;
  }
  const DomainBytes never = lacks(bytes, bytes, book.hard_limit);
  if (!never.empty()) return refusal(book, option, RefuseWhy::kNeverFits, never);
  const DomainBytes pinned = lacks(bytes + book.pinned, bytes, book.hard_limit);
  if (!pinned.empty()) {
    Refuse refuse = refusal(book, option, RefuseWhy::kPinned, pinned);
    name_blockers(book, refuse, Standing::kPinned);
    return refuse;
  }
  const DomainBytes stuck = lacks(bytes + book.pinned + book.stuck, bytes, book.hard_limit);
  if (!stuck.empty()) {
    Refuse refuse = refusal(book, option, RefuseWhy::kStuck, stuck);
    name_blockers(book, refuse, Standing::kStuck);
    return refuse;
  }
  return foreign(book, option, lacks(bytes + book.pinned + book.stuck, bytes, book.limit));
}

Refuse refuse_missing(const PlanBook& book) {
  const PlacementOption none;
  const auto& options = book.need->options;
  Refuse refuse =
      refusal(book, options.empty() ? none : options.front(), RefuseWhy::kDeviceMissing, {});
  refuse.devices = book.need->missing_devices;
  return refuse;
}

}  // namespace berth::core
