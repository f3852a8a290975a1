#include "supervisor/admin/failure_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::admin {

std::size_t failure_limit(std::uint32_t asked) {
  return asked == 0 ? kUsualFailures : std::min<std::size_t>(asked, kMostFailures);
}

std::vector<core::FailureRecord> failures_of(std::vector<core::FailureRecord> records,
                                             const std::string& model) {
  if (!model.empty()) {
    std::erase_if(records,
                  [&model](const core::FailureRecord& record) { return record.model != model; });
  }
  return records;
}

std::vector<core::FailureRecord> standing_first(std::vector<core::FailureRecord> standing,
                                                std::vector<core::FailureRecord> kept) {
  std::erase_if(kept, [&standing](const core::FailureRecord& record) {
    return !record.lifted ||
           std::ranges::find(standing, record.id, &core::FailureRecord::id) != standing.end();
  });
  std::ranges::move(kept, std::back_inserter(standing));
  return standing;
}

}  // namespace berth::admin
