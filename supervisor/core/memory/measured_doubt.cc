#include "supervisor/core/memory/measured_doubt.h"

#include <algorithm>
#include <string_view>

#include "common/units.h"
#include "supervisor/core/memory/saturating.h"

namespace berth::core {
namespace {

std::uint64_t most_in(std::string_view id, const Domains& domains, std::uint64_t main_memory) {
  const auto domain = std::ranges::find(domains, id, &Domain::id);
  if (domain == domains.end()) return 0;
  return domain == domains.begin() ? std::max(main_memory, domain->total) : domain->total;
}

}  // namespace

std::optional<std::string> doubt_of(const MeasuredLoad& measured, const Domains& domains,
                                    std::uint64_t main_memory) {
  for (const MeasuredDomain& row : measured.domains) {
    const std::uint64_t most = most_in(row.domain, domains, main_memory);
    if (most == 0) continue;  // not told
    const auto tell = [&](std::uint64_t bytes, const std::string& what) {
      return "It says that " + format_bytes(bytes) + " of " + row.domain + " were " + what +
             ", and there are " + format_bytes(most) + ".";
    };
    const std::uint64_t said = saturating_add(saturating_add(row.weights, row.kv), row.working);
    if (said > most) return tell(said, "taken by weights, KV and working memory");
    if (row.process.value_or(0) > most) return tell(*row.process, "seen with the process");
    if (row.at_least.value_or(0) > saturating_add(most, most)) {
      return tell(*row.at_least, "found to be needed");
    }
  }
  return std::nullopt;
}

}  // namespace berth::core
