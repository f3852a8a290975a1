#include "supervisor/unplaced_models.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace berth {

std::vector<std::string> UnplacedModels::sentences() const {
  std::vector<std::string> all;
  std::size_t more = 0;
  const std::shared_ptr<const catalog::Catalog> catalog = parts_.catalog();
  for (const auto& model : catalog->models()) {
    if (!model->problem.empty()) continue;
    const std::string problem = parts_.problem(*model);
    if (problem.empty()) continue;
    if (all.size() == kMostTold) {
      ++more;
    } else {
      all.push_back(model->name + " cannot be loaded: " + problem);
    }
  }
  if (more > 0) {
    all.push_back("The devices of " + std::to_string(more) + " more models are not there.");
  }
  std::vector<std::string> pins = parts_.pins();
  more = pins.size() - std::min(pins.size(), kMostTold);
  std::move(pins.begin(), pins.end() - static_cast<std::ptrdiff_t>(more), std::back_inserter(all));
  if (more > 0) all.push_back(std::to_string(more) + " more pins do not fit.");
  return all;
}

}  // namespace berth
