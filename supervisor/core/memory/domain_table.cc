#include "supervisor/core/memory/domain_table.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

#include "common/text.h"
#include "common/units.h"

namespace berth::core {
namespace {

constexpr std::uint64_t kLeastHeadroom = 512ULL << 20U;

// "CUDA" of "CUDA0".
std::string_view backend_of(std::string_view name) {
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
    name.remove_suffix(1);
  }
  return name;
}

// Whether its memory is the machine's. A software device says that it is a GPU; it is on no bus and
// has as much memory as the machine.
bool shares_host(const ListedDevice& device, std::uint64_t host_total) {
  if (device.type != DeviceType::kGpu && device.type != DeviceType::kOther) return true;
  if (!normal_pci(device.pci).empty()) return false;
  const std::uint64_t apart =
      std::max(device.total, host_total) - std::min(device.total, host_total);
  return device.total == 0 || apart <= host_total / 50;
}

std::uint64_t device_headroom(std::uint64_t total) {
  return std::min(total, std::max(total / 20, kLeastHeadroom));
}

// One device, whichever backends list it.
struct Found {
  std::string id;
  std::string pci;
  std::vector<std::string> names;
  std::uint64_t total = 0;
  bool host = false;
};

class TableMaker {
 public:
  TableMaker(std::uint64_t host_total, const BudgetConfig& budgets)
      : host_total_(host_total), budgets_(budgets) {}

  void add(const ListedDevice& device, std::span<const DriverDevice> known) {
    const std::string pci = normal_pci(device.pci);
    if (!pci.empty()) {
      const auto same = std::ranges::find(found_, pci, &Found::pci);
      if (same != found_.end()) {
        same->names.push_back(device.name);
        same->total = std::max(same->total, device.total);
        return;
      }
    }
    Found found;
    found.pci = pci;
    found.names = {device.name};
    found.total = device.total;
    found.host = shares_host(device, host_total_);
    const auto driver = std::ranges::find_if(
        known, [&](const DriverDevice& one) { return !pci.empty() && normal_pci(one.pci) == pci; });
    if (driver != known.end() && !driver->uuid.empty()) {
      found.id = driver->uuid;
      found.total = std::max(found.total, driver->total);
    } else {
      found.id = std::string(backend_of(device.name)) + ':' + device.description;
    }
    found_.push_back(std::move(found));
  }

  DomainTable make() {
    tell_apart();
    std::ranges::stable_sort(found_, {}, &Found::id);
    add_host();
    for (const Found& found : found_) place(found);
    for (const auto& [key, budget] : budgets_.devices) {
      if (std::ranges::none_of(found_, [&](const Found& found) { return is_named(found, key); })) {
        table_.problems.push_back("memory.devices." + key + ": there is no such device; " +
                                  those_there());
      }
    }
    return std::move(table_);
  }

 private:
  // Two cards of one make.
  void tell_apart() {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const std::string id = found_[i].id;
      const auto same = [&](const Found& one) { return one.id == id; };
      if (std::ranges::count_if(found_, same) < 2) continue;
      std::size_t number = 0;
      for (Found& one : found_) {
        if (!same(one)) continue;
        ++number;
        one.id += one.pci.empty() ? " no. " + std::to_string(number) : " at " + one.pci;
      }
    }
  }

  void add_host() {
    Domain host;
    host.id = "host";
    host.total = host_total_;
    host.budget = budgets_.host.value_or(host_total_ / 10 * 6);
    check_budget("memory.host_budget", host.budget, host_total_, " of main memory");
    table_.domains.push_back(std::move(host));
  }

  static bool is_named(const Found& found, const std::string& key) {
    return key == found.id || std::ranges::find(found.names, key) != found.names.end();
  }

  [[nodiscard]] DeviceBudget budget_of(const Found& found) const {
    const auto* const section = section_of(found);
    return section == nullptr ? DeviceBudget() : section->second;
  }

  // [memory.devices."KEY"]; null: there is none for it.
  [[nodiscard]] const std::pair<const std::string, DeviceBudget>* section_of(
      const Found& found) const {
    for (const auto& section : budgets_.devices) {
      if (is_named(found, section.first)) return &section;
    }
    return nullptr;
  }

  // The setting that its budget is from.
  [[nodiscard]] std::string key_of(const Found& found) const {
    const auto* const section = section_of(found);
    if (section == nullptr || !section->second.budget) return "memory.device_budget";
    return "memory.devices." + section->first + ".budget";
  }

  void place(const Found& found) {
    const DeviceBudget budget = budget_of(found);
    DomainIndex index = kHostDomain;
    if (!found.host || budget.own) {
      if (table_.domains.size() >= kMaxDomains) {
        table_.problems.push_back(found.id + " is not used: berth serves " +
                                  std::to_string(kMaxDomains - 1) + " devices at most.");
        return;
      }
      index = static_cast<DomainIndex>(table_.domains.size());
      table_.domains.push_back(found.host ? own_domain(found, budget)
                                          : device_domain(found, budget));
    } else if (budget.budget) {
      table_.problems.push_back("memory.devices." + found.id +
                                ": it shares the main memory, so that its budget counts only with "
                                "`domain = \"own\"`.");
    }
    for (const std::string& name : found.names) table_.by_device.emplace(name, index);
  }

  Domain device_domain(const Found& found, const DeviceBudget& budget) {
    Domain domain;
    domain.id = found.id;
    domain.device = found.names.front();
    domain.total = found.total;
    domain.budget = budget.budget.value_or(
        budgets_.device.value_or(found.total - device_headroom(found.total)));
    check_budget(key_of(found), domain.budget, domain.total, " of " + found.id);
    return domain;
  }

  // A part of the host's memory.
  Domain own_domain(const Found& found, const DeviceBudget& budget) {
    Domain& host = table_.domains.front();
    Domain domain;
    domain.id = found.id;
    domain.device = found.names.front();
    domain.budget = budget.budget.value_or(host.budget / 2);
    if (domain.budget > host.budget) {
      table_.problems.push_back("memory.devices." + found.id + ": its own budget of " +
                                format_bytes(domain.budget) + " is more than the " +
                                format_bytes(host.budget) +
                                " of the host, from which it is taken.");
      domain.budget = host.budget;
    }
    domain.total = host_total_;
    host.budget -= domain.budget;
    host.total -= std::min(host.total, domain.budget);
    return domain;
  }

  void check_budget(const std::string& key, std::uint64_t budget, std::uint64_t total,
                    const std::string& where) {
    if (budget <= total) return;
    table_.problems.push_back(key + " is " + format_bytes(budget) + ", and there are " +
                              format_bytes(total) + where + ": what there is bounds it.");
  }

  [[nodiscard]] std::string those_there() const {
    if (found_.empty()) return "this machine has none.";
    std::vector<std::string> ids;
    for (const Found& found : found_) ids.push_back(found.id);
    return "there are " + join_names(ids) + '.';
  }

  const std::uint64_t host_total_;
  const BudgetConfig& budgets_;
  std::vector<Found> found_;
  DomainTable table_;
};

bool is_hex(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  });
}

}  // namespace

std::optional<DomainIndex> DomainTable::find(std::string_view id) const {
  const auto at = std::ranges::find(domains, id, &Domain::id);
  if (at == domains.end()) return std::nullopt;
  return static_cast<DomainIndex>(at - domains.begin());
}

DomainTable make_domain_table(std::uint64_t host_total, std::span<const ListedDevice> listed,
                              std::span<const DriverDevice> known, const BudgetConfig& budgets) {
  TableMaker maker(host_total, budgets);
  for (const ListedDevice& device : listed) {
    if (device.type != DeviceType::kProcessor) maker.add(device, known);
  }
  return maker.make();
}

std::string normal_pci(std::string_view address) {
  const std::size_t dot = address.rfind('.');
  const std::size_t colon = address.rfind(':', dot);
  if (dot == std::string_view::npos || colon == std::string_view::npos) return {};
  const std::string_view function = address.substr(dot + 1);
  const std::string_view device = address.substr(colon + 1, dot - colon - 1);
  std::string_view bus = address.substr(0, colon);
  std::string_view domain = "0000";
  if (const std::size_t first = bus.rfind(':'); first != std::string_view::npos) {
    domain = bus.substr(0, first);
    bus.remove_prefix(first + 1);
  }
  while (domain.size() > 4 && domain.front() == '0') domain.remove_prefix(1);
  if (!is_hex(domain) || domain.size() < 4 || !is_hex(bus) || bus.size() != 2 || !is_hex(device) ||
      device.size() != 2 || !is_hex(function) || function.size() != 1) {
    return {};
  }
  std::string all;
  all.append(domain).append(":").append(bus).append(":").append(device).append(".").append(
      function);
  return lowered(all);
}

}  // namespace berth::core
