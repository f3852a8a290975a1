#include "supervisor/catalog/catalog.h"

#include <algorithm>
#include <utility>

#include "common/text.h"

namespace berth::catalog {
namespace {

constexpr std::size_t kMaxShownName = 100;  // bytes of a wrong name in a message
// Looking for near names costs a comparison each; a request must not be able to make that long.
constexpr std::size_t kMaxCompared = 1000;

Error unknown_model(std::string_view name,
                    const std::vector<std::shared_ptr<const Model>>& models) {
  ErrorExtras extras;
  extras.param = "model";
  std::vector<std::string> names;
  for (const auto& model : models) {
    if (names.size() >= kMaxCompared) break;
    names.push_back(model->name);
    names.insert(names.end(), model->aliases.begin(), model->aliases.end());
  }
  extras.suggestions = nearest_names(name, names);

  std::string message = "There is no model '" + printable_line(name, kMaxShownName) + "'";
  if (!extras.suggestions.empty()) {
    message += "; did you mean ";
    for (std::size_t i = 0; i < extras.suggestions.size(); ++i) {
      if (i > 0) message += i + 1 == extras.suggestions.size() ? " or " : ", ";
      message += "'" + extras.suggestions[i] + "'";
    }
    message += "?";
  } else if (models.empty()) {
    message += ": the catalogue is empty. Put a GGUF file into a directory of `models.dirs`.";
  } else {
    message += ". `berth models` lists those that there are.";
  }
  return {Reason::kUnknownModel, std::move(message), std::move(extras)};
}

}  // namespace

Catalog::Catalog(std::vector<std::shared_ptr<const Model>> models) : models_(std::move(models)) {
  const auto by_name = [](const auto& a, const auto& b) { return a->name < b->name; };
  std::stable_sort(models_.begin(), models_.end(), by_name);
  for (std::size_t i = 0; i < models_.size(); ++i) {
    names_.push_back({models_[i]->name, i});
    for (const std::string& alias : models_[i]->aliases) aliases_.push_back({alias, i});
  }
  const auto by_text = [](const Entry& a, const Entry& b) { return a.name < b.name; };
  std::stable_sort(aliases_.begin(), aliases_.end(), by_text);
}

Result<std::shared_ptr<const Model>> Catalog::find(std::string_view name) const {
  for (const auto* entries : {&names_, &aliases_}) {
    const auto found = std::lower_bound(
        entries->begin(), entries->end(), name,
        [](const Entry& entry, std::string_view wanted) { return entry.name < wanted; });
    if (found != entries->end() && found->name == name) return models_[found->model];
  }
  return fail(unknown_model(name, models_));
}

}  // namespace berth::catalog
