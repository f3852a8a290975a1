#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "supervisor/catalog/config.h"
#include "supervisor/catalog/model.h"

namespace berth::catalog {

// Which models there are: one immutable snapshot. Any thread.
class Catalog {
 public:
  Catalog() = default;
  explicit Catalog(std::vector<std::shared_ptr<const Model>> models);

  // The model of that name or alias. Errors: kUnknownModel with up to three near names.
  [[nodiscard]] Result<std::shared_ptr<const Model>> find(std::string_view name) const;
  // By name.
  [[nodiscard]] const std::vector<std::shared_ptr<const Model>>& models() const { return models_; }

 private:
  std::vector<std::shared_ptr<const Model>> models_;
};

// Reads the model directories and the configured paths, and the header of every file. Blocks on the
// file system: run it on the pool. Broken files become models with a `problem`; unreadable
// directories are reported in `problems`.
struct ScanResult {
  Catalog catalog;
  std::vector<std::string> problems;
};
ScanResult scan(const Config& config);

}  // namespace berth::catalog
