#include "tests/models/broken_models.h"

#include <cstddef>
#include <cstdio>
#include <utility>

namespace berth::test_models {
namespace {

constexpr std::array<FaultInfo, kFaults> kInfos = {{
    {Fault::kUnknownArchitecture, "unknown-architecture", false, ""},
    {Fault::kBadMagic, "bad-magic", true, "is not a GGUF file"},
    {Fault::kEmpty, "empty", true, "is empty"},
    {Fault::kTruncatedHeader, "truncated-header", true, "truncated header"},
    {Fault::kTruncatedData, "truncated-data", true, "truncated: needs"},
    {Fault::kMissingTensor, "missing-tensor", false, ""},
    {Fault::kMissingShard, "missing-shard", true, "is missing"},
    {Fault::kImpossibleSize, "impossible-size", true, "impossible size"},
    {Fault::kWrongVersion, "wrong-version", true, "version 4"},
    {Fault::kNoTokenizer, "no-tokenizer", false, ""},
}};

// A tensor whose dimensions multiply to more than 64 bits hold.
void add_impossible_tensor(GgufWriter& writer) {
  constexpr std::uint64_t kLength = 1ULL << 32U;
  writer.add_tensor("impossible.weight", TensorType::kF32, {kLength, kLength, kLength},
                    [](std::vector<float>&, std::uint64_t) {});
}

// One that the architecture cannot do without.
std::string needed_tensor(const GgufWriter& model) {
  const std::string usual = "blk.0.ffn_down.weight";
  if (model.has_tensor(usual)) return usual;
  // The embedding comes first, and is needed by all.
  return model.tensor_names().front();
}

}  // namespace

const std::array<FaultInfo, kFaults>& all_faults() {
  return kInfos;
}

std::optional<Fault> fault_from_name(std::string_view name) {
  for (const FaultInfo& info : kInfos) {
    if (info.name == name) return info.fault;
  }
  return std::nullopt;
}

Result<std::string> damaged_bytes(GgufWriter file, Fault fault) {
  std::string bytes;
  switch (fault) {
    case Fault::kUnknownArchitecture:
    case Fault::kNoTokenizer:
    case Fault::kMissingShard:
    case Fault::kMissingTensor:
      return fail(Reason::kInvalidArgument, "only a model can have that fault");
    case Fault::kEmpty:
      break;
    case Fault::kBadMagic:
      bytes = file.bytes();
      bytes.replace(0, 4, "FGUG");
      break;
    case Fault::kTruncatedHeader:
      bytes = file.header();
      bytes.resize(bytes.size() / 2);
      break;
    case Fault::kTruncatedData:
      bytes = file.bytes();
      bytes.resize(file.header().size() + (bytes.size() - file.header().size()) / 2);
      break;
    case Fault::kImpossibleSize:
      add_impossible_tensor(file);
      bytes = file.header();
      break;
    case Fault::kWrongVersion:
      file.set_version(4);
      bytes = file.bytes();
      break;
  }
  return bytes;
}

Result<std::string> write_broken_model(Fault fault, const std::string& path, ModelOptions options) {
  if (fault == Fault::kUnknownArchitecture) options.architecture = "kestrel";
  if (fault == Fault::kNoTokenizer) options.tokenizer = Tokenizer::kNone;
  if (fault == Fault::kMissingShard) {
    options.shards = 2;
    auto files = write_model(options, path);
    if (!files) return fail(std::move(files).error());
    std::remove(files->back().c_str());
    return files->front();
  }

  auto made = make_model(options);
  if (!made) return fail(std::move(made).error());
  Result<std::string> bytes;
  if (fault == Fault::kMissingTensor) made->remove_tensor(needed_tensor(*made));
  if (fault == Fault::kMissingTensor || fault == Fault::kUnknownArchitecture ||
      fault == Fault::kNoTokenizer) {
    bytes = made->bytes();
  } else {
    bytes = damaged_bytes(std::move(*made), fault);
    if (!bytes) return bytes;
  }
  if (auto written = write_file(path, *bytes); !written) return fail(std::move(written).error());
  return path;
}

}  // namespace berth::test_models
