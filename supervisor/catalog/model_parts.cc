#include "supervisor/catalog/model_parts.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "common/text.h"
#include "supervisor/catalog/file_stamp.h"
#include "supervisor/catalog/file_words.h"

namespace berth::catalog {
namespace {

// The problem of a companion, with what to do about it.
Error companion_problem(std::string_view what, const std::string& path, const Error& error,
                        std::string_view setting) {
  const std::string file = file_name_of(path);
  std::string text = without_stop(error.message);
  if (text.find(file) == std::string::npos) text = file + ": " + text;
  return {error.reason, "Its " + std::string(what) + " cannot be used: " + text + "; correct `" +
                            std::string(setting) + "`, or the file."};
}

}  // namespace

std::uint64_t parts_stamp(const Model& model) {
  std::uint64_t stamp = model.file_stamp;
  const auto add = [&stamp](const std::string& path) {
    stamp = mix_stamp(stamp, std::hash<std::string>()(path));
    stamp = mix_stamp(stamp, path.empty() ? 0 : file_stamp(path));
  };
  add(model.settings.draft);
  for (const std::string& path : model.settings.adapters) add(path);
  return stamp;
}

PartsReader::PartsReader(const Catalog* previous) {
  if (previous == nullptr) return;
  for (const auto& model : previous->models()) {
    if (model->file_stamp == 0) continue;
    if (model->parts) same_files_[model->file_stamp] = model.get();
    same_parts_[model->parts_stamp] = model.get();
  }
}

PartsReader::Shape PartsReader::own_shape(const Model& model, const gguf::WholeModel* read) const {
  const auto same = same_files_.find(model.file_stamp);
  if (same != same_files_.end()) return same->second->parts->model;
  std::optional<gguf::WholeModel> whole;
  if (read == nullptr) {
    auto again = gguf::read_whole_model(model.path);
    if (!again) return fail(std::move(again).error());
    read = &whole.emplace(*std::move(again));
  }
  auto shape = core::model_shape(*read);
  if (shape) return shape;
  return fail(shape.error().reason, "What " + file_name_of(model.path) +
                                        " takes of the memory cannot be told from its header: " +
                                        without_stop(shape.error().message) + ".");
}

const PartsReader::Shape& PartsReader::draft(const std::string& path) {
  const auto known = drafts_.find(path);
  if (known != drafts_.end()) return known->second;
  Shape shape = fail(Reason::kInternal, "");
  if (auto whole = gguf::read_whole_model(path)) {
    shape = core::model_shape(*whole);
  } else {
    shape = fail(std::move(whole).error());
  }
  if (!shape) shape = fail(companion_problem("draft model", path, shape.error(), "draft"));
  return drafts_.emplace(path, std::move(shape)).first->second;
}

const PartsReader::Shape& PartsReader::adapter(const std::string& path) {
  const auto known = adapters_.find(path);
  if (known != adapters_.end()) return known->second;
  Shape shape = fail(Reason::kInternal, "");
  if (auto whole = gguf::read_whole_model(path)) {
    shape = core::adapter_shape(*whole);
  } else {
    shape = fail(std::move(whole).error());
  }
  if (!shape) shape = fail(companion_problem("adapter", path, shape.error(), "adapters"));
  return adapters_.emplace(path, std::move(shape)).first->second;
}

void PartsReader::fill(Model& model, const gguf::WholeModel* read) {
  model.parts_stamp = parts_stamp(model);
  const auto same = same_parts_.find(model.parts_stamp);
  if (same != same_parts_.end() && model.file_stamp != 0) {
    model.parts = same->second->parts;
    model.parts_problem = same->second->parts_problem;
    return;
  }
  auto parts = std::make_shared<ModelParts>();
  Shape own = own_shape(model, read);
  if (!own) {
    model.parts_problem = own.error().message;
    return;
  }
  parts->model = *std::move(own);
  if (!model.settings.draft.empty()) {
    const Shape& shape = draft(model.settings.draft);
    if (!shape) {
      model.parts_problem = shape.error().message;
      return;
    }
    parts->draft = *shape;
  }
  for (const std::string& path : model.settings.adapters) {
    const Shape& shape = adapter(path);
    if (!shape) {
      model.parts_problem = shape.error().message;
      return;
    }
    parts->adapters.push_back(*shape);
  }
  model.parts = std::move(parts);
}

}  // namespace berth::catalog
