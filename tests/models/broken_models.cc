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
  GgufWriter& writer = *made;
  std::string bytes;
  switch (fault) {
    case Fault::kUnknownArchitecture:
    case Fault::kNoTokenizer:
    case Fault::kMissingShard:
      bytes = writer.bytes();
      break;
    case Fault::kBadMagic:
      bytes = writer.bytes();
      bytes.replace(0, 4, "FGUG");
      break;
    case Fault::kEmpty:
      break;
    case Fault::kTruncatedHeader:
      bytes = writer.header();
      bytes.resize(bytes.size() / 2);
      break;
    case Fault::kTruncatedData:
      bytes = writer.bytes();
      bytes.resize(bytes.size() * 3 / 4);
      break;
    case Fault::kMissingTensor:
      writer.remove_tensor("blk.0.ffn_down.weight");
      bytes = writer.bytes();
      break;
    case Fault::kImpossibleSize:
      add_impossible_tensor(writer);
      bytes = writer.header();
      break;
    case Fault::kWrongVersion:
      writer.set_version(4);
      bytes = writer.bytes();
      break;
  }
  if (auto written = write_file(path, bytes); !written) return fail(std::move(written).error());
  return path;
}

}  // namespace berth::test_models
