#include "supervisor/unplaced_models.h"

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
  for (std::string& problem : parts_.pins()) {
    if (all.size() > kMostTold) break;
    all.push_back(std::move(problem));
  }
  return all;
}

}  // namespace berth
