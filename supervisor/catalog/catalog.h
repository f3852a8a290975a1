#pragma once

#include <cstddef>
#include <cstdint>
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

  // The model of that name, else of that alias. Errors: kUnknownModel with up to three near names.
  [[nodiscard]] Result<std::shared_ptr<const Model>> find(std::string_view name) const;
  // By name.
  [[nodiscard]] const std::vector<std::shared_ptr<const Model>>& models() const { return models_; }

 private:
  // A name or an alias; names come before aliases. The text lives in the model.
  struct Entry {
    std::string_view name;
    std::size_t model = 0;
  };

  std::vector<std::shared_ptr<const Model>> models_;
  std::vector<Entry> names_;    // sorted
  std::vector<Entry> aliases_;  // sorted
};

// What a scan found.
struct ScanResult {
  Catalog catalog;
  // For an operator, one sentence each: directories that cannot be read, files that are not used
  // because another one has their name, aliases that are taken.
  std::vector<std::string> problems;
  // Of the files as they were read: another one than stat_stamp() gives when something changed.
  std::uint64_t stamp = 0;
};

// Bounds of a scan.
struct ScanLimits {
  // Of one model directory with its sub-directories; what is beyond them is not looked at.
  std::size_t directory_entries = 10'000;
};

// Reads the model directories and the configured paths, and the header of every file. Blocks on the
// file system: run it on the pool. Broken files become models with a `problem`. With the `previous`
// catalogue the headers of files that did not change are not read again.
ScanResult scan(const Config& config, const Catalog* previous = nullptr, ScanLimits limits = {});

// A number that changes when a model directory or a file of the catalogue changes (L23). Blocks on
// the file system: run it on the pool, every 30 s, and scan when it is not ScanResult::stamp.
std::uint64_t stat_stamp(const Config& config, const Catalog& catalog);

// The window that a model is served with: the configured one, else what it declares (4096 where it
// does not say), at most `auto_context_max` and at least kMinContext. Tokens.
std::uint32_t served_context(const ModelSettings& settings, std::uint32_t declared,
                             std::uint32_t auto_context_max);

}  // namespace berth::catalog
