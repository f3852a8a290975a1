#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/manager.h"
#include "supervisor/residency/manager_words.h"
#include "supervisor/residency/room.h"

// Pins (M16): by hand, and the configuration's.
namespace berth::residency {

bool Manager::pinned(const std::string& model) const {
  return pins_.contains(model) || configured_pins_.contains(model);
}

std::shared_ptr<const catalog::Model> Manager::counted_pin(
    const std::shared_ptr<const catalog::Model>& pinned) const {
  auto now = present(pinned);
  if (now && now->problem.empty()) return now;
  const auto berth = berths_.find(pinned->name);
  return berth != berths_.end() && berth->second.current != nullptr ? pinned : nullptr;
}

bool Manager::others_pinned(const std::string& model) const {
  const auto counts = [&](const auto& pin) {
    return pin.first != model && counted_pin(pin.second) != nullptr;
  };
  return std::ranges::any_of(pins_, counts) || std::ranges::any_of(configured_pins_, counts);
}

std::vector<std::shared_ptr<const catalog::Model>> Manager::pinned_beside(
    const std::string& model) const {
  auto all = pins_;
  all.insert(configured_pins_.begin(), configured_pins_.end());
  all.erase(model);
  std::vector<std::shared_ptr<const catalog::Model>> others;
  for (const auto& [name, pinned] : all) {
    if (auto counted = counted_pin(pinned)) others.push_back(std::move(counted));
  }
  return others;
}

void Manager::take_configured_pins() {
  configured_pins_.clear();
  if (environment_.configured_pins) {
    for (auto& model : environment_.configured_pins()) configured_pins_.emplace(model->name, model);
  }
  for (auto& [name, berth] : berths_) {
    if (berth.current == nullptr || berth.current->machine().pinned() == pinned(name)) continue;
    berth.current->pin(pinned(name));
    end_job_load(berth);
  }
}

std::vector<std::string> Manager::pin_problems() const {
  std::vector<std::string> problems;
  // What is pinned by hand was seen to fit.
  std::vector<std::shared_ptr<const catalog::Model>> before;
  for (const auto& [name, model] : pins_) {
    if (auto counted = counted_pin(model)) before.push_back(std::move(counted));
  }
  for (const auto& [name, model] : configured_pins_) {
    const auto counted = counted_pin(model);
    if (!counted || pins_.contains(name)) continue;
    if (const Status fits = room_.fits_together(before, counted); fits) {
      before.push_back(counted);
    } else if (fits.error().extras && fits.error().extras->memory) {  // else a device is not there
      problems.push_back(
          "The configuration pins " + name +
          ", which does not fit beside what else is pinned: " + fits.error().message);
    }
  }
  return problems;
}

Status Manager::pin(const std::shared_ptr<const catalog::Model>& model) {
  if (!model->problem.empty()) return fail(problem_error(*model));
  if (pins_.contains(model->name)) return {};
  Status fits = room_.fits_together(pinned_beside(model->name), model);
  if (!fits) return fits;
  pins_.emplace(model->name, model);
  const auto berth = berths_.find(model->name);
  if (berth != berths_.end() && berth->second.current != nullptr) berth->second.current->pin(true);
  room_.changed();
  return {};
}

bool Manager::unpin(const std::string& model) {
  if (pins_.erase(model) == 0) return false;
  const auto berth = berths_.find(model);
  if (berth != berths_.end() && berth->second.current != nullptr && !pinned(model)) {
    berth->second.current->pin(false);
    end_job_load(berth->second);
  }
  room_.changed();
  return true;
}

}  // namespace berth::residency
