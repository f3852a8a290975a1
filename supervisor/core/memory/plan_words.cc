#include "supervisor/core/memory/plan_words.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/durations.h"
#include "common/text.h"
#include "common/units.h"
#include "supervisor/core/no_room.h"

namespace berth::core {
namespace {

using std::chrono::milliseconds;

std::string domain_name(const Snapshot& snapshot, DomainIndex domain) {
  if (domain < snapshot.domains.size()) return snapshot.domains[domain].id;
  return "domain " + std::to_string(domain);
}

// "3 GiB of host and 1 GiB of gpu0"
std::string in_words(const DomainBytes& bytes, const Snapshot& snapshot) {
  std::vector<std::string> parts;
  for (DomainIndex i = 0; i < kMaxDomains; ++i) {
    if (bytes[i] == 0) continue;
    parts.push_back(format_bytes(bytes[i]) + " of " + domain_name(snapshot, i));
  }
  return parts.empty() ? "nothing" : listed(parts);
}

std::vector<std::string> models_of(const std::vector<Uuid>& ids, const Snapshot& snapshot) {
  std::vector<std::string> models;
  for (const Entry& entry : snapshot.entries) {
    if (std::ranges::find(ids, entry.id) != ids.end()) models.push_back(entry.model);
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

std::string who_goes(const std::vector<Victim>& victims, const DomainBytes& bank,
                     const Snapshot& snapshot) {
  std::vector<std::string> parts;
  for (const Victim& victim : victims) {
    switch (victim.kind) {
      case VictimKind::kReady:
        parts.push_back(victim.model + " is stopped");
        break;
      case VictimKind::kAbandonedLoad:
        parts.push_back("the load of " + victim.model + ", which nobody waits for, is interrupted");
        break;
      case VictimKind::kIdleWork:
        parts.push_back(victim.model + " is taken from idle work");
        break;
    }
  }
  if (!bank.empty()) parts.push_back("kept sessions give " + in_words(bank, snapshot));
  return listed(parts);
}

// "a has 5 GiB of host and c has 1 GiB of host"
std::string who_is_pinned(const std::vector<std::string>& models, const Snapshot& snapshot) {
  std::vector<std::string> parts;
  for (const std::string& model : models) {
    DomainBytes bytes;
    for (const Entry& entry : snapshot.entries) {
      if (entry.pinned && entry.model == model) bytes += entry.charge;
    }
    parts.push_back(model + " has " + in_words(bytes, snapshot));
  }
  return listed(std::move(parts));
}

std::string waits_for(const Park& park, const Snapshot& snapshot) {
  const std::string models = listed(models_of(park.blockers, snapshot));
  switch (park.what) {
    case ParkFor::kLeaving:
      return "for the memory of " + models + " to come back";
    case ParkFor::kClosing:
      return "for what still runs on " + models;
    case ParkFor::kGrace:
      return "a moment, since somebody may come back to " + models;
    case ParkFor::kClients:
      return "for the clients of " + models +
             (park.close.empty() ? "" : ", where nothing new begins from now on");
    case ParkFor::kOlder:
      return "behind " + park.older + ", for which room is made first";
    case ParkFor::kForeign:
      return "for programs that are not berth's to give memory back";
    case ParkFor::kIdleRoom:
      return "until there is room without an eviction, as idle work does";
  }
  return "";
}

struct Sentence {
  const Snapshot& snapshot;
  const Need& need;

  std::string operator()(const Fits& it) const {
    return need.model + " fits: it takes " + in_words(it.at.bytes, snapshot) + ", and leaves " +
           in_words(it.left, snapshot) + ".";
  }
  std::string operator()(const ShrinkBank& it) const {
    return need.model + " fits, with " + in_words(it.at.bytes, snapshot) +
           ", as soon as kept sessions give " + in_words(it.bank, snapshot) + ".";
  }
  std::string operator()(const Evict& it) const {
    return need.model + " takes " + in_words(it.at.bytes, snapshot) + ", where " +
           in_words(it.missing, snapshot) +
           " are missing: " + who_goes(it.victims, it.bank, snapshot) + ".";
  }
  std::string operator()(const PreEmpt& it) const {
    const std::string goes = who_goes(it.victims, it.bank, snapshot);
    return need.model + " takes " + in_words(it.at.bytes, snapshot) + ", where " +
           in_words(it.missing, snapshot) + " are missing: idle work gives way within " +
           format_duration_human(milliseconds(whole_milliseconds(it.within))) +
           (goes.empty() ? "" : ", " + goes) + ".";
  }
  std::string operator()(const Park& it) const {
    return need.model + " takes " + in_words(it.at.bytes, snapshot) + ", where " +
           in_words(it.missing, snapshot) + " are missing: it waits " + waits_for(it, snapshot) +
           ".";
  }
  std::string operator()(const Refuse& it) const { return refusal(it); }

  [[nodiscard]] std::string refusal(const Refuse& it) const {
    const std::string numbers = need.model + " needs " + in_words(it.needed, snapshot);
    const std::string lacking = in_words(it.deficit, snapshot);
    switch (it.why) {
      case RefuseWhy::kDeviceMissing:
        return need.model + " is not loaded: its " + not_there(it.devices) +
               ". `berth doctor` lists the devices that are.";
      case RefuseWhy::kNeverFits:
        return numbers + ", which is " + lacking + " more than models may ever have here.";
      case RefuseWhy::kPinned:
        return numbers + ". Pinned models are in the way (" + who_is_pinned(it.models, snapshot) +
               "): " + lacking + " are missing until that changes.";
      case RefuseWhy::kStuck:
        return numbers + ". Processes that were killed and do not go are in the way (" +
               listed(it.models) + "): " + lacking + " are missing.";
      case RefuseWhy::kForeign:
        return numbers + ", and programs that are not berth's have taken so much that " + lacking +
               " are missing.";
    }
    return numbers;
  }
};

MemoryShortage shortage_of(const Refuse& refuse, const Snapshot& snapshot) {
  const DomainIndex at = refuse.domain;
  return {.domain = domain_name(snapshot, at),
          .needed_bytes = refuse.needed[at],
          .limit_bytes = refuse.limit[at],
          .available_bytes = refuse.available[at],
          .deficit_bytes = refuse.deficit[at]};
}

MemoryShortage shortage_of(const Park& park, const Snapshot& snapshot) {
  const DomainIndex at = largest_of(park.missing);
  std::uint64_t used = 0;
  for (const Entry& entry : snapshot.entries) used += entry.charge[at];
  for (const IdleJob& job : snapshot.jobs) used += job.extra[at];
  const std::uint64_t limit = at < snapshot.domains.size() ? snapshot.domains[at].limit() : 0;
  return {.domain = domain_name(snapshot, at),
          .needed_bytes = park.at.bytes[at],
          .limit_bytes = limit,
          .available_bytes = limit > used ? limit - used : 0,
          .deficit_bytes = park.missing[at]};
}

double whole_seconds(Duration duration) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(duration).count();
  return static_cast<double>(std::max<std::int64_t>(seconds, 1));
}

std::string_view state_name(EntryState state) {
  switch (state) {
    case EntryState::kStarting:
      return "starting";
    case EntryState::kLoading:
      return "loading";
    case EntryState::kReady:
      return "ready";
    case EntryState::kClosing:
      return "closing";
    case EntryState::kLeaving:
      return "stopping";
    case EntryState::kStuck:
      return "stuck";
  }
  return "";
}

// The idle work that holds what `blockers` are (I11).
void name_holder(NoRoom& what, const std::vector<Uuid>& blockers, const Snapshot& snapshot,
                 WallTime now) {
  for (const IdleJob& job : snapshot.jobs) {
    if (std::ranges::find(blockers, job.instance) == blockers.end()) continue;
    const auto entry = std::ranges::find(snapshot.entries, job.instance, &Entry::id);
    if (entry == snapshot.entries.end()) continue;
    const milliseconds age(whole_milliseconds(snapshot.now - job.since));
    what.holder = HolderInfo{.model = entry->model,
                             .state = std::string(state_name(entry->state)),
                             .job = job.kind,
                             .since_unix_ms = (now - age).time_since_epoch().count()};
    what.holder_resident = true;
    what.gives_way_within = milliseconds(whole_milliseconds(job.gives_way_within));
    return;
  }
}

std::string would_fit_words(const WouldFit& fits) {
  return " A window of " + std::to_string(fits.context) + " tokens with " +
         std::to_string(fits.sequences) + (fits.sequences == 1 ? " sequence" : " sequences") +
         " would fit.";
}

}  // namespace

std::string listed(std::vector<std::string> parts) {
  constexpr std::size_t kMost = 4;
  if (parts.size() > kMost) {
    const std::size_t others = parts.size() - kMost;
    parts.resize(kMost);
    parts.push_back(std::to_string(others) + " more");
  }
  return join_names(parts);
}

std::string not_there(std::vector<std::string> devices) {
  const bool one = devices.size() == 1;
  return (one ? "device " : "devices ") + listed(std::move(devices)) +
         (one ? " is not there" : " are not there");
}

std::string sentence_of(const Decision& decision, const Snapshot& snapshot, const Need& need) {
  return std::visit(Sentence{.snapshot = snapshot, .need = need}, decision);
}

Error error_of(const Refuse& refuse, const Snapshot& snapshot, const Need& need, WallTime now,
               const std::optional<WouldFit>& fits) {
  std::string message = Sentence{.snapshot = snapshot, .need = need}.refusal(refuse);
  ErrorExtras extras;
  if (refuse.why != RefuseWhy::kDeviceMissing) extras.memory = shortage_of(refuse, snapshot);
  switch (refuse.why) {
    case RefuseWhy::kNeverFits:
      extras.memory->would_fit = fits;
      if (fits) message += would_fit_words(*fits);
      return {Reason::kInsufficientMemory, std::move(message), std::move(extras)};
    case RefuseWhy::kPinned:
      message += " `berth unpin` makes room, or a configuration that does not pin them.";
      break;
    case RefuseWhy::kForeign:
      extras.retry_after_seconds = whole_seconds(snapshot.policy.foreign_wait);
      break;
    case RefuseWhy::kDeviceMissing:
      break;
    case RefuseWhy::kStuck: {
      NoRoom what{.model = need.model, .memory = *extras.memory};
      name_holder(what, refuse.blockers, snapshot, now);
      if (what.holder) return no_room_error(what, now);
      break;
    }
  }
  return {Reason::kNoRoom, std::move(message), std::move(extras)};
}

Error error_of(const Park& park, const Snapshot& snapshot, const Need& need, WallTime now) {
  const Duration again = park.again ? *park.again - snapshot.now : snapshot.policy.max_wait;
  NoRoom what{.model = need.model,
              .memory = shortage_of(park, snapshot),
              .retry_after_seconds = whole_seconds(again)};
  name_holder(what, park.blockers, snapshot, now);
  if (what.holder) return no_room_error(what, now);
  ErrorExtras extras;
  extras.memory = what.memory;
  extras.retry_after_seconds = what.retry_after_seconds;
  return {Reason::kNoRoom, sentence_of(park, snapshot, need), std::move(extras)};
}

}  // namespace berth::core
