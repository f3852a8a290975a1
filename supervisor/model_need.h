#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/catalog/config.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/core/memory/charge.h"
#include "supervisor/core/memory/cost_model.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/core/memory/measured_load.h"
#include "supervisor/core/memory/placement_options.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/core/memory/window.h"
#include "supervisor/residency/memory_access.h"

namespace berth {

// What instances of models need: windows (M6), ways to place them (M17) and charges (M4, M5), as
// residency::MemoryAccess asks for them. Keeps what it has worked out of each model until something
// that it depends on is another one. Core strand only; nothing fails.
class ModelNeeds {
 public:
  struct Parts {
    // Of now; its domains are those of every snapshot, in the same order.
    std::function<const core::DomainTable&()> table;
    std::function<std::shared_ptr<const catalog::Config>()> config;
    // What is known of earlier loads, by measured_key(); null: nothing. The pointer is not kept.
    // Empty: nothing is ever known.
    std::function<const core::MeasuredLoad*(const std::string& key)> measured{};
    // Of a load of that model, with the catalogue's window; needed where `measured` is there.
    std::function<core::Provenance(const catalog::Model& model)> provenance{};
    std::uint32_t cores = 1;  // usable_cores(): a worker's threads where none are set
    bool repacks = true;      // processor_repacks()
  };

  explicit ModelNeeds(Parts parts) : parts_(std::move(parts)) {}
  ModelNeeds(const ModelNeeds&) = delete;
  ModelNeeds& operator=(const ModelNeeds&) = delete;
  ~ModelNeeds() = default;

  // Answers for MemoryAccess: need, terms, would_fit and device_problem. Must not be used after
  // this one's end. The domains are those of `access`.
  void join(residency::MemoryAccess& access);

  // As MemoryAccess::need. Tens of microseconds.
  residency::MemoryNeed need(const catalog::Model& model, const core::Snapshot& snapshot,
                             const core::Need& need);
  // As MemoryAccess::terms. A window of 0 is the catalogue's. Tens of microseconds.
  core::Charge terms(const catalog::Model& model, std::uint32_t window,
                     const core::Placement& placement);
  // As MemoryAccess::would_fit: in what the domains may give at most, with nobody else's programs
  // there. Absent: nothing would, or it has no window. Some milliseconds.
  std::optional<WouldFit> would_fit(const catalog::Model& model, const core::Snapshot& snapshot);

  // What the record of a load of that model, with that window, there is found by. A command has
  // neither window nor placement. Without Parts::provenance: empty.
  [[nodiscard]] std::string measured_key(const catalog::Model& model, std::uint32_t window,
                                         const core::Placement& placement) const;

 private:
  // All that a window depends on.
  struct Question {
    std::shared_ptr<const catalog::ModelParts> parts;
    core::ServeShape serve;  // with a window of 0
    core::Targets targets;
    core::WindowTerms terms;
    core::DomainBytes whole;   // the whole budget
    core::DomainBytes shared;  // auto_share of it
    core::DomainBytes reach;   // what is not taken for long

    bool operator==(const Question&) const = default;
  };
  struct Answer {
    Question question;
    core::ServedWindow window;
    core::ModelCost cost;  // with that window
  };

  [[nodiscard]] core::ServeShape serve_shape(const catalog::Model& model) const;
  [[nodiscard]] Question question_of(const catalog::Model& model, core::Targets targets,
                                     const core::Snapshot& snapshot, const core::Need& need) const;
  const Answer& answer_to(const std::string& name, Question question);
  [[nodiscard]] core::ModelCost cost_of(const catalog::Model& model, std::uint32_t window) const;
  // As need(); `excess` gets by how much earlier loads took more than was predicted.
  residency::MemoryNeed find_need(const catalog::Model& model, const core::Snapshot& snapshot,
                                  const core::Need& need, core::DomainBytes& excess);
  // Replaces what is known better from earlier loads; by how much that is more.
  core::DomainBytes measure(const catalog::Model& model, std::uint32_t window,
                            const core::ModelCost& cost,
                            std::vector<core::PlacementOption>& options) const;

  [[nodiscard]] residency::MemoryNeed command_need(const catalog::Model& model,
                                                   const core::Snapshot& snapshot) const;
  // Absent: neither declared nor measured.
  [[nodiscard]] std::optional<core::Charge> command_charge(const catalog::Model& model) const;

  Parts parts_;
  std::map<std::string, Answer> answers_;  // by model
};

// Whether this processor's ggml keeps matrices of some types in an order of its own.
bool processor_repacks();

// What a model whose header does not tell is taken to cost: its files and a tenth more, as one
// layer, since nobody knows how many it has.
core::ModelCost guessed_cost(const catalog::Model& model);

}  // namespace berth
