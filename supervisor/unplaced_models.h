#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/event.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/told_problems.h"

namespace berth {

// Tells which models ask for devices that are not there (M17), and which the configuration pins
// although they do not fit beside the others that are pinned (M16): they are refused, and nobody
// else says so to an operator. Core strand only; lives as long as the program; nothing fails.
class UnplacedModels {
 public:
  // More models, or pins, than that are counted in one sentence.
  static constexpr std::size_t kMostTold = 100;

  struct Parts {
    EventSink& events;
    std::function<std::shared_ptr<const catalog::Catalog>()> catalog;
    // As MemoryAccess::device_problem.
    std::function<std::string(const catalog::Model& model)> problem;
    // As Residency::pin_problems.
    std::function<std::vector<std::string>()> pins;
  };

  explicit UnplacedModels(Parts parts) : parts_(std::move(parts)), told_(parts_.events, "model") {}
  UnplacedModels(const UnplacedModels&) = delete;
  UnplacedModels& operator=(const UnplacedModels&) = delete;
  ~UnplacedModels() = default;

  // The models or the devices may be others: what is new gets an event.
  void look() { told_.tell(sentences()); }
  // As it is now, one sentence each.
  [[nodiscard]] std::vector<std::string> sentences() const;

 private:
  Parts parts_;
  ToldProblems told_;
};

}  // namespace berth
