#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "common/result.h"
#include "tests/models/random_model.h"

namespace berth::test_models {

// What is wrong with a model file.
enum class Fault : std::uint8_t {
  kUnknownArchitecture,
  kBadMagic,
  kEmpty,
  kTruncatedHeader,
  kTruncatedData,
  kMissingTensor,
  kMissingShard,
  kImpossibleSize,
  kWrongVersion,
  kNoTokenizer,
};

struct FaultInfo {
  Fault fault;
  std::string_view name;  // "unknown-architecture"
  // Whether the header alone shows it; else only libllama can tell.
  bool header_shows;
  // A part of what our header reader says; empty where it says nothing.
  std::string_view reader_says;
};
// For the names of parametrised tests.
inline void PrintTo(const FaultInfo& info, std::ostream* out) {
  *out << info.name;
}

constexpr std::size_t kFaults = 10;
const std::array<FaultInfo, kFaults>& all_faults();
std::optional<Fault> fault_from_name(std::string_view name);

// The file with a fault that any GGUF file can have. Errors: kInvalidArgument, where the fault is
// one of models.
Result<std::string> damaged_bytes(GgufWriter file, Fault fault);

// Writes a small model with that fault and returns the path to give to a loader: with kMissingShard
// it is the first of two shards, whose second is not there. Errors: as write_model().
Result<std::string> write_broken_model(Fault fault, const std::string& path,
                                       ModelOptions options = {});

}  // namespace berth::test_models
