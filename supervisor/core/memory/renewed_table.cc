#include "supervisor/core/memory/renewed_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::core {
namespace {

using Rows = std::vector<std::optional<DomainIndex>>;  // by the row of `fresh`

bool taken(const Rows& rows, DomainIndex row) {
  return std::ranges::find(rows, std::optional(row)) != rows.end();
}

// Where the domains of `fresh` were.
Rows old_rows(const DomainTable& before, const DomainTable& fresh) {
  Rows rows;
  for (const Domain& domain : fresh.domains) rows.push_back(before.find(domain.id));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Domain& domain = fresh.domains[i];
    if (rows[i] || domain.device.empty()) continue;
    const auto same = std::ranges::find_if(before.domains, [&](const Domain& one) {
      return one.device == domain.device && one.total == domain.total && !fresh.find(one.id);
    });
    if (same == before.domains.end()) continue;
    const auto row = static_cast<DomainIndex>(same - before.domains.begin());
    if (!taken(rows, row)) rows[i] = row;
  }
  return rows;
}

}  // namespace

DomainTable renewed(const DomainTable& before, DomainTable fresh) {
  if (before.domains.empty()) return fresh;
  Rows rows = old_rows(before, fresh);
  DomainTable made;
  made.problems = std::move(fresh.problems);
  made.domains = before.domains;
  for (Domain& domain : made.domains) domain.lost = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Domain& domain = fresh.domains[i];
    if (rows[i]) {
      made.domains[*rows[i]] = std::move(domain);
    } else if (made.domains.size() < kMaxDomains) {
      rows[i] = static_cast<DomainIndex>(made.domains.size());
      made.domains.push_back(std::move(domain));
    } else {
      made.problems.push_back(domain.id +
                              " is not used until berthd is started again: there were " +
                              std::to_string(kMaxDomains - 1) + " other devices before.");
    }
  }
  for (auto& [name, row] : fresh.by_device) {
    if (rows[row]) made.by_device.emplace(name, *rows[row]);
  }
  return made;
}

}  // namespace berth::core
