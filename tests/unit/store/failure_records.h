#pragma once

#include <cstdint>
#include <string>

#include "supervisor/core/ledger/failure_record.h"
#include "tests/unit/core/ledger/records.h"
#include "tests/unit/store/records.h"

namespace berth::testing {

// With everything that a record can hold.
inline core::FailureRecord full_failure(std::uint64_t number, const std::string& model) {
  core::FailureRecord record = failure_record(number, model, core::FailureClass::kResource);
  record.reason = "it's \"gone\" \xF0\x9F\x99\x82";
  record.exit = core::Exited{3};
  record.command = {"serve", "--file", "/models/x.gguf", ""};
  record.environment = {"A=1", "B="};
  record.log_tail = {"one", "two"};
  record.memory = {{"host", 1, 2, 3, 4, 5},
                   {"CUDA0", UINT64_MAX, std::nullopt, 0, std::nullopt, std::nullopt}};
  record.failing_domain = "CUDA0";
  return record;
}

}  // namespace berth::testing
