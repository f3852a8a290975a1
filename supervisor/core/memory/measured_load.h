#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/core/memory/charge.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/placement.h"

namespace berth::core {

// What loads of one provenance took, or at least needed, in one domain (M5). Bytes; a row of the
// store.
struct MeasuredDomain {
  std::string domain;  // Domain::id
  // As libllama said of its buffers when the model was ready; the most of all loads.
  std::uint64_t weights = 0;
  std::uint64_t mapped = 0;  // of the weights, the file's own pages
  std::uint64_t kv = 0;
  std::uint64_t working = 0;
  // The most that the worker's process was seen to have. Of the host: anonymous and shared memory,
  // without pages of files. Of a device: what its driver says of the process. Absent: not known.
  std::optional<std::uint64_t> process;
  // What a load that failed there showed to be needed (L21); gone as soon as one succeeds.
  std::optional<std::uint64_t> at_least;

  bool operator==(const MeasuredDomain&) const = default;
};

// The measured record of one provenance and placement. A value; pure.
struct MeasuredLoad {
  std::uint32_t loads = 0;  // that became ready
  std::vector<MeasuredDomain> domains;

  [[nodiscard]] const MeasuredDomain* find(std::string_view domain) const;
  bool operator==(const MeasuredLoad&) const = default;
};

// Of a model's last load that became ready, in a domain.
struct LoadRatio {
  std::string model;
  std::string domain;  // Domain::id
  double predicted_to_actual = 0;
};

// What the record of a load is found by: everything that it depends on, but not the budgets, which
// change nothing of what it takes; and where its layers are, by the devices' ids.
std::string measurement_key(const Provenance& provenance, const Placement& placement,
                            const Domains& domains);

// The model became ready: what libllama reported (only weights, mapped, kv and working are read).
void add_report(MeasuredLoad& measured, std::span<const MeasuredDomain> reported);
// The process was seen with so much of a domain; the record keeps the most.
void add_process(MeasuredLoad& measured, std::string_view domain, std::uint64_t bytes);
// A load failed for want of memory: the record keeps the most that failed attempts showed to be
// needed (L21).
void add_failure(MeasuredLoad& measured, const FailureMemory& failure);

// The prediction with what is known of earlier loads. Where one became ready, its weights, KV and
// working memory are what libllama said. The overhead of a device is what its driver said beside
// them; that of the host is at least the prediction, since a process has only those pages of its
// buffers that it has touched. Where nothing was reported, as by a program that is not ours, the
// overhead grows until the sum is what the process had. Where loads only failed it grows until the
// sum is what they showed to be needed. What is measured has a smaller error.
Charge with_measured(Charge predicted, const MeasuredLoad& measured, const Domains& domains);

// predicted / actual of a domain, for the metric; `predicted` is what was predicted before the
// load. Absent where the load did not become ready or took nothing there.
std::optional<double> predicted_to_actual(std::uint64_t predicted, const MeasuredDomain& actual,
                                          std::uint64_t predicted_overhead, bool is_host);

}  // namespace berth::core
