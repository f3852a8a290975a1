#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "supervisor/core/ledger/failure_record.h"

namespace berth::core {

// What is kept of that domain; made where nothing is yet.
inline FailureMemory& row_of(std::vector<FailureMemory>& memory, const std::string& domain) {
  const auto at = std::ranges::find(memory, domain, &FailureMemory::domain);
  if (at != memory.end()) return *at;
  FailureMemory& row = memory.emplace_back();
  row.domain = domain;
  return row;
}

}  // namespace berth::core
