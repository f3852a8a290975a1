#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "supervisor/core/ledger/failure_record.h"

namespace berth::testing {

inline WallTime ledger_time(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(seconds));
}

// Ids whose order is that of the numbers.
inline Uuid numbered_id(std::uint64_t number) {
  return Uuid::make(WallTime(std::chrono::milliseconds(static_cast<std::int64_t>(number))), 1, 1);
}

inline core::Provenance some_provenance() {
  core::Provenance provenance;
  provenance.runtime = "b5046";
  provenance.files = {
      {"/models/a-00001-of-00002.gguf", 4'000'000'000, 1'700'000'000'000'000'001, 7},
      {"/models/a-00002-of-00002.gguf", 3'000'000'000, 1'700'000'000'000'000'002, 0}};
  provenance.budget = {{"CUDA0", 20'000'000'000}, {"host", 8'000'000'000}};
  provenance.sequences = 4;
  provenance.window = 4096;
  provenance.kv_types = core::KvTypes{"f16", "q8_0"};
  provenance.devices.emplace().push_back({"CUDA0", "550.54"});
  provenance.launch_hash = 0xFEDCBA9876543210ULL;
  provenance.program = {{"/usr/bin/python3", 6'000'000, 1'700'000'000'000'000'003, 11},
                        {"/srv/server.py", 1000, 1'700'000'000'000'000'004, 12}};
  return provenance;
}

inline core::FailureRecord failure_record(std::uint64_t number, std::string model,
                                          core::FailureClass failure_class) {
  core::FailureRecord record;
  record.id = numbered_id(number);
  record.model = std::move(model);
  record.failure_class = failure_class;
  record.reason = "unknown model architecture: 'x'";
  record.instance = numbered_id(1'000'000 + number);
  record.started = ledger_time(static_cast<std::int64_t>(number));
  record.ended = ledger_time(static_cast<std::int64_t>(number) + 1);
  record.provenance = some_provenance();
  return record;
}

}  // namespace berth::testing
