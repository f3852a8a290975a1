#include "supervisor/memory_keeper.h"

#include <algorithm>
#include <utility>

#include "common/units.h"
#include "supervisor/core/memory/renewed_table.h"

namespace berth {
namespace {

// Of the main memory, where the kernel does not say it.
constexpr std::uint64_t kUnknownTotal = std::uint64_t{1} << 50U;
// Until devices are listed again where that failed: a cold driver may have taken too long.
constexpr Duration kListLater = std::chrono::seconds(30);

std::string words_of(const core::Domains& domains) {
  std::string text;
  for (const core::Domain& domain : domains) {
    if (domain.lost) continue;
    if (!text.empty()) text += ", ";
    text += domain.id + ": " + format_bytes(domain.budget) + " of " + format_bytes(domain.total);
  }
  return text;
}

std::uint64_t apart(std::uint64_t a, std::uint64_t b) {
  return std::max(a, b) - std::min(a, b);
}

}  // namespace

MemoryKeeper::MemoryKeeper(Parts parts)
    : parts_(std::move(parts)),
      round_({.clock = parts_.clock,
              .run_blocking = parts_.run_blocking,
              .read_host = parts_.read_host,
              .probe = parts_.probe}),
      told_(parts_.events, "memory") {}

MemoryKeeper::~MemoryKeeper() {
  *self_ = nullptr;
}

// --- which domains there are

void MemoryKeeper::start(std::function<void()> done) {
  host_source_.answered = driver_source_.answered = parts_.clock.now();
  ahead_ = parts_.clock.boot_now().time_since_epoch() - parts_.clock.now().time_since_epoch();
  list(std::move(done));
}

void MemoryKeeper::use(const core::BudgetConfig& budgets) {
  if (parts_.budgets != budgets) {
    parts_.budgets = budgets;
    if (!table_.domains.empty()) make_table();
  }
  list({});
}

void MemoryKeeper::list(std::function<void()> done) {
  if (done) list_done_.push_back(std::move(done));
  if (std::exchange(listing_, true)) {
    list_again_ = true;
    return;
  }
  parts_.lister.list([self = self_](DeviceLister::Devices devices) {
    if (*self != nullptr) (*self)->on_listed(std::move(devices));
  });
}

void MemoryKeeper::on_listed(DeviceLister::Devices devices) {
  list_problem_.clear();
  list_later_.reset();
  if (devices) {
    listed_ = *std::move(devices);
  } else {
    list_problem_ =
        "The devices could not be listed, so that only those that were known before "
        "are used: berth-worker --devices: " +
        devices.error().message;
    list_later_ = parts_.clock.sleep_for(kListLater, [this] { list({}); });
  }
  ask_driver_ = true;
  sample([this] {
    make_table();
    listing_ = false;
    for (const auto& done : std::exchange(list_done_, {})) done();
    if (std::exchange(list_again_, false)) list({});
  });
}

void MemoryKeeper::make_table() {
  std::vector<core::DriverDevice> known;
  for (const memory::DeviceReading& one : now_.devices) {
    known.push_back({one.uuid, one.pci, one.name, one.total});
  }
  const std::uint64_t host = memory::usable_host_memory(now_.host);
  host_known_ = host != 0;
  core::DomainTable table = core::renewed(
      table_,
      core::make_domain_table(host == 0 ? kUnknownTotal : host, listed_, known, parts_.budgets));
  put_listed_use(table);
  table_ = std::move(table);
  const std::string words = words_of(table_.domains);
  if (std::exchange(told_domains_, words) != words) {
    parts_.events.emit_typed(events::MemoryDomains{.domains = words});
  }
  look();
}

// Of devices that no driver's library tells of: what was used when they were listed, of that what
// is not ours.
void MemoryKeeper::put_listed_use(core::DomainTable& table) const {
  const std::vector<memory::ChargedProcess> charged = charged_now();
  for (const core::ListedDevice& device : listed_) {
    const auto row = table.by_device.find(device.name);
    if (row == table.by_device.end() || row->second == core::kHostDomain) continue;
    core::Domain& domain = table.domains[row->second];
    // A part of the host's memory that is a domain of its own has no use by others of its own.
    const auto budget = parts_.budgets.devices.find(domain.id);
    const auto by_name = parts_.budgets.devices.find(device.name);
    const bool own = (budget != parts_.budgets.devices.end() && budget->second.own) ||
                     (by_name != parts_.budgets.devices.end() && by_name->second.own);
    if (own || device.total == 0) continue;
    const std::uint64_t used = device.total - std::min(device.total, device.free);
    const auto before = row->second < table_.domains.size()
                            ? std::optional(table_.domains[row->second].foreign)
                            : std::nullopt;
    domain.foreign = memory::foreign_by_charge(used, row->second, charged, before);
  }
}

std::vector<memory::ChargedProcess> MemoryKeeper::charged_now() const {
  return parts_.charged ? parts_.charged() : std::vector<memory::ChargedProcess>();
}

// --- samples

void MemoryKeeper::sample(std::function<void()> done) {
  wanted_.push_back(std::move(done));
  if (!running_) begin_round();
}

void MemoryKeeper::begin_round() {
  running_ = true;
  next_.reset();
  under_way_ = std::exchange(wanted_, {});
  const SteadyTime now = parts_.clock.now();
  // A driver that is asked keeps its device awake: seldom, where nothing of ours is there.
  const bool due = now - driver_asked_ >= kIdleDriver;
  const bool wanted = !under_way_.empty() || due || !charged_now().empty();
  const bool ask = std::exchange(ask_driver_, false) || (!no_driver_ && wanted);
  if (ask) driver_asked_ = now;
  round_.run(ask, [this](MemoryRound::Found found) { on_round(std::move(found)); });
}

void MemoryKeeper::on_round(MemoryRound::Found found) {
  take_host(std::move(found.host));
  now_.other_numbers = parts_.other_numbers;
  if (found.devices) take_devices(*found.devices);
  if (!table_.domains.empty()) {
    // A host that did not answer in time at first has no budget that is its own.
    const bool late = !host_known_ && memory::usable_host_memory(now_.host) != 0;
    late ? make_table() : look();
  }
  take_pressure();
  running_ = false;
  for (const auto& done : std::exchange(under_way_, {})) done();
  notice_sleep();
  if (running_) return;
  if (!wanted_.empty()) return begin_round();
  next_ = parts_.clock.sleep_for(core::pressure_interval(now_.host.stall.has_value()),
                                 [this] { begin_round(); });
}

void MemoryKeeper::take_host(std::optional<memory::HostReading> host) {
  const bool answered = host.has_value();
  if (host) {
    const auto machine = now_.host.machine;
    now_.host = *std::move(host);
    if (now_.host.machine) return hear(host_source_);
    now_.host.machine = machine;
  }
  if (parts_.clock.now() - host_source_.answered < kHostPatience) return;
  miss(host_source_,
       std::string("What the machine's memory is used for is not known, so that the last figures "
                   "are used: ") +
           (answered ? "/proc/meminfo cannot be read."
                     : "the kernel does not answer (/proc, or berthd's control group)."));
}

void MemoryKeeper::take_devices(const memory::DeviceProbe::Readings& readings) {
  if (readings) {
    const auto ids = [](const std::vector<memory::DeviceReading>& devices) {
      std::set<std::string> all;
      for (const auto& one : devices) all.insert(one.uuid);
      return all;
    };
    const std::set<std::string> there = ids(*readings);
    // Its devices have other ids as soon as it tells them.
    const bool anew = !listing_ && !std::ranges::includes(driver_ids_, there);
    driver_ids_.insert(there.begin(), there.end());
    now_.devices = *readings;
    driver_late_ = false;
    no_driver_ = false;
    hear(driver_source_);
    if (anew) list({});
    return;
  }
  const bool known = !driver_ids_.empty();
  // Its library may be there without a driver, or a device.
  const bool needed = std::ranges::any_of(
      listed_, [](const core::ListedDevice& device) { return device.name.starts_with("CUDA"); });
  no_driver_ = !known && (!needed || readings.error().reason == Reason::kNotFound);
  if (no_driver_) return driver_source_.problem.clear();
  if (known && parts_.clock.now() - driver_source_.answered < kDriverPatience) return;
  driver_late_ = known;
  miss(driver_source_, "What devices have free is not known: " + readings.error().message);
}

void MemoryKeeper::look() {
  const std::vector<memory::ChargedProcess> charged = charged_now();
  const core::Domains before =
      std::exchange(domains_, memory::domains_now(table_, domains_, now_, charged));
  for (core::Domain& domain : domains_) {
    if (!driver_ids_.contains(domain.id)) continue;
    if (driver_late_ || memory::reading_of(domain, now_.devices) == nullptr) domain.lost = true;
  }
  show();
  told_.tell(lacks());
  tell_processes();
  if (parts_.on_changed && tells_more(before)) parts_.on_changed();
}

bool MemoryKeeper::tells_more(const core::Domains& before) const {
  if (before.size() != domains_.size()) return true;
  for (std::size_t i = 0; i < before.size(); ++i) {
    core::Domain was = before[i];
    if (apart(was.foreign, domains_[i].foreign) >= kTellBytes) return true;
    was.foreign = domains_[i].foreign;
    if (was != domains_[i]) return true;
  }
  return false;
}

void MemoryKeeper::notice_sleep() {
  const Duration ahead =
      parts_.clock.boot_now().time_since_epoch() - parts_.clock.now().time_since_epoch();
  if (ahead - std::exchange(ahead_, ahead) >= kSlept) list({});
}

}  // namespace berth
