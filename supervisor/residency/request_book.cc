#include "supervisor/residency/request_book.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/reason.h"
#include "common/text.h"
#include "supervisor/core/entitlement.h"

namespace berth::residency {
namespace {

constexpr Duration kSecond = std::chrono::seconds(1);
constexpr std::size_t kMostSaidBytes = 256;

WallTime later(WallTime from, Duration by) {
  return from + std::chrono::duration_cast<std::chrono::milliseconds>(by);
}

std::string name_of(Reason reason) {
  return std::string(reason_info(reason).name);
}

}  // namespace

std::string_view request_stage_name(RequestStage stage) {
  switch (stage) {
    case RequestStage::kWaiting:
      return "waiting";
    case RequestStage::kLoading:
      return "loading";
    case RequestStage::kPrefill:
      return "prefill";
    case RequestStage::kGenerating:
      return "generating";
    case RequestStage::kFinished:
      return "finished";
    case RequestStage::kFailed:
      return "failed";
    case RequestStage::kRefused:
      return "refused";
    case RequestStage::kCancelled:
      return "cancelled";
  }
  return "failed";
}

// --- one request

RequestEntry::RequestEntry(RequestBook& book, RequestArrival arrival)
    : book_(book),
      arrival_(std::move(arrival)),
      arrived_(book.clock_.now()),
      arrived_wall_(book.clock_.wall_now()) {}

void RequestEntry::waiting(bool loading) {
  if (ended_ || admitted_) return;
  stage_ = loading ? RequestStage::kLoading : RequestStage::kWaiting;
}

void RequestEntry::admitted(const std::string& instance_id) {
  if (ended_) return;
  admitted_ = book_.clock_.now();
  instance_id_ = instance_id;
  stage_ = RequestStage::kPrefill;
}

void RequestEntry::tokens(std::uint32_t count) {
  if (count == 0 || tokens_.fetch_add(count, std::memory_order_relaxed) != 0) return;
  first_token();
}

void RequestEntry::first_token() {
  if (first_token_ns_.load(std::memory_order_relaxed) != 0) return;
  const std::int64_t since = (book_.clock_.now() - arrived_).count();
  first_token_ns_.store(std::max<std::int64_t>(since, 1), std::memory_order_relaxed);
}

void RequestEntry::end(RequestStage how, std::optional<Reason> reason,
                       std::optional<RequestUsage> usage) {
  if (ended_) return;
  ended_ = book_.clock_.now();
  stage_ = how;
  if (reason) reason_ = name_of(*reason);
  usage_ = usage;
  arrival_.cancel = nullptr;
  book_.ended(*this);
}

RequestRecord RequestEntry::record() const {
  RequestRecord record;
  record.id = arrival_.id;
  record.model = arrival_.model;
  record.tenant = arrival_.tenant;
  record.protocol = arrival_.protocol;
  record.instance_id = instance_id_;
  record.stage = stage_;
  record.reason = reason_;
  record.arrived = arrived_wall_;
  record.deadline = later(arrived_wall_, arrival_.deadline - arrived_);
  // From the one wall time, so that the clock's being set does not turn the order around.
  if (admitted_) {
    record.to_place = *admitted_ - arrived_;
    record.admitted = later(arrived_wall_, *record.to_place);
  }
  if (const std::int64_t since = first_token_ns_.load(std::memory_order_relaxed); since > 0) {
    record.to_first_token = Duration(since);
    record.first_token = later(arrived_wall_, *record.to_first_token);
    if (!ended_) record.stage = RequestStage::kGenerating;
  }
  if (ended_) {
    record.took = *ended_ - arrived_;
    record.ended = later(arrived_wall_, *record.took);
  }
  record.prefill_done = prefill_done_.load(std::memory_order_relaxed);
  record.prefill_total = prefill_total_.load(std::memory_order_relaxed);
  record.tokens = tokens_.load(std::memory_order_relaxed);
  record.usage = usage_;
  return record;
}

// --- all of them

std::shared_ptr<RequestEntry> RequestBook::arrive(RequestArrival arrival) {
  auto entry = std::make_shared<RequestEntry>(*this, std::move(arrival));
  if (live_.size() < kMostLive) entry->place_ = live_.insert(live_.end(), entry);
  return entry;
}

void RequestBook::ended(RequestEntry& entry) {
  const RequestRecord record = entry.record();
  const bool known = !record.tenant.empty() && record.reason != name_of(Reason::kUnauthenticated);
  if (known) keep(record);
  if (entry.place_) {
    // The caller holds the entry too.
    live_.erase(*entry.place_);
    entry.place_.reset();
  }
  if (on_end_) on_end_(record);
}

void RequestBook::keep(const RequestRecord& record) {
  OfTenant& of_tenant = ended_[record.tenant];
  const bool refused = record.stage == RequestStage::kRefused;
  std::deque<Ended>& list = refused ? of_tenant.refused : of_tenant.worked;
  of_tenant.last = ++ends_;
  list.push_front({ends_, record});
  if (list.size() > (refused ? kRefusedKept : kEndedKept)) list.pop_back();
  if (ended_.size() <= kTenantsKept) return;
  ended_.erase(
      std::ranges::min_element(ended_, {}, [](const auto& tenant) { return tenant.second.last; }));
}

void RequestBook::refused(RequestArrival arrival, std::string said, const Error& error) {
  events::RequestRefused event;
  event.request = arrival.id;
  event.model = printable_line(said, kMostSaidBytes);
  event.reason = name_of(error.reason);
  event.message = core::message_for_log(error);
  // Else those who share a tenant without a key would be shown what comes with wrong ones.
  if (error.reason != Reason::kUnauthenticated) event.tenant = arrival.tenant;
  event.protocol = arrival.protocol;
  {
    const std::lock_guard lock(waiting_mutex_);
    if (waiting_.size() < kRefusalsWaiting) {
      waiting_.push_back({std::move(arrival), std::move(event), error.reason});
    } else {
      ++waiting_beyond_[error.reason];
    }
    if (std::exchange(noting_, true)) return;
  }
  clock_.post([this] { note_refusals(); });
}

void RequestBook::note_refusals() {
  std::vector<Refusal> refusals;
  std::map<Reason, std::uint64_t> beyond;
  {
    const std::lock_guard lock(waiting_mutex_);
    refusals.swap(waiting_);
    beyond.swap(waiting_beyond_);
    noting_ = false;
  }
  for (Refusal& refusal : refusals) note_refusal(std::move(refusal));
  begin_second();
  for (const auto& [reason, count] : beyond) {
    RequestRecord record;
    record.stage = RequestStage::kRefused;
    record.reason = name_of(reason);
    record.arrived = clock_.wall_now();
    record.alike = count;
    if (on_end_) on_end_(record);
    omit(count);
  }
}

void RequestBook::note_refusal(Refusal refusal) {
  refusal.arrival.deadline = clock_.now();
  RequestEntry entry(*this, std::move(refusal.arrival));
  entry.end(RequestStage::kRefused, refusal.reason);
  tell_refusal(std::move(refusal.event));
}

void RequestBook::begin_second() {
  const SteadyTime now = clock_.now();
  if (second_began_ && now - *second_began_ < kSecond) return;
  second_began_ = now;
  told_ = 0;
  told_of_.clear();
}

void RequestBook::tell_refusal(events::RequestRefused refusal) {
  begin_second();
  if (told_ >= kRefusalsTold || told_of_[refusal.tenant] >= kRefusalsToldOfTenant) return omit(1);
  ++told_;
  ++told_of_[refusal.tenant];
  events_.emit_typed(std::move(refusal));
}

void RequestBook::omit(std::uint64_t count) {
  omitted_ += count;
  if (omitted_timer_.armed()) return;
  omitted_timer_ = clock_.sleep_until(*second_began_ + kSecond, [this] { tell_omitted(); });
}

void RequestBook::tell_omitted() {
  omitted_timer_.reset();
  events_.emit_typed(events::RequestRefusalsOmitted{
      .count = static_cast<std::int64_t>(std::exchange(omitted_, 0))});
}

std::vector<RequestRecord> RequestBook::live(const std::optional<std::string>& tenant) const {
  std::vector<RequestRecord> records;
  if (!tenant) records.reserve(live_.size());
  for (const auto& entry : live_) {
    if (!tenant || entry->arrival_.tenant == *tenant) records.push_back(entry->record());
  }
  return records;
}

std::vector<RequestRecord> RequestBook::ended(const std::optional<std::string>& tenant) const {
  std::vector<const Ended*> found;
  const auto collect = [&found](const OfTenant& of_tenant) {
    for (const Ended& one : of_tenant.worked) found.push_back(&one);
    for (const Ended& one : of_tenant.refused) found.push_back(&one);
  };
  if (!tenant) {
    for (const auto& [name, of_tenant] : ended_) collect(of_tenant);
  } else if (const auto at = ended_.find(*tenant); at != ended_.end()) {
    collect(at->second);
  }
  const std::size_t count = std::min(found.size(), kEndedKept);
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(count),
                            std::ranges::greater(), [](const Ended* one) { return one->number; });
  std::vector<RequestRecord> records;
  records.reserve(count);
  for (std::size_t i = 0; i < count; ++i) records.push_back(found[i]->record);
  return records;
}

std::array<std::size_t, 4> RequestBook::counts() const {
  std::array<std::size_t, 4> counts{};
  for (const auto& entry : live_) {
    auto stage = static_cast<std::size_t>(entry->stage_);
    if (entry->tokens_.load(std::memory_order_relaxed) > 0) {
      stage = static_cast<std::size_t>(RequestStage::kGenerating);
    }
    if (stage < counts.size()) ++counts.at(stage);
  }
  return counts;
}

std::optional<SteadyTime> RequestBook::oldest_waiting() const {
  // They are listed by arrival.
  for (const auto& entry : live_) {
    if (!entry->admitted_) return entry->arrived_;
  }
  return std::nullopt;
}

std::size_t RequestBook::cancel(const std::string& id, const std::optional<std::string>& tenant) {
  // A cancel ends its request, which changes the list.
  std::vector<std::function<void()>> cancels;
  for (const auto& entry : live_) {
    const RequestArrival& arrival = entry->arrival_;
    if (arrival.id != id || !arrival.cancel) continue;
    if (tenant && arrival.tenant != *tenant) continue;
    cancels.push_back(arrival.cancel);
  }
  for (const auto& cancel : cancels) cancel();
  return cancels.size();
}

}  // namespace berth::residency
