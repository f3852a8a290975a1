#include "tests/models/random_model.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "tests/models/architectures.h"
#include "tests/models/model_builder.h"

namespace berth::test_models {
namespace {

std::optional<Pooling> chosen_pooling(const ModelOptions& options, const Architecture& kind) {
  if (options.pooling) return options.pooling;
  if (kind.memory == Memory::kNone) return Pooling::kMean;
  return std::nullopt;
}

}  // namespace

Tokenizer chosen_tokenizer(const ModelOptions& options) {
  if (options.tokenizer) return *options.tokenizer;
  const Architecture* const kind = find_architecture(options.architecture);
  return kind != nullptr && kind->memory == Memory::kNone ? Tokenizer::kWpm : Tokenizer::kBpe;
}

std::optional<ModelOptions> preset(std::string_view name) {
  if (name != "200m") return std::nullopt;
  ModelOptions options;
  options.name = "random 200M";
  options.layers = 12;
  options.heads = 16;
  options.kv_heads = 8;
  options.embedding = 1024;
  options.feed_forward = 2816;
  options.vocabulary = 32'000;
  options.context = 16'384;
  return options;
}

Result<GgufWriter> make_model(const ModelOptions& options) {
  if (auto sound = check_options(options); !sound) return fail(std::move(sound).error());
  const Architecture* const known = find_architecture(options.architecture);
  const Architecture& kind = known != nullptr ? *known : *find_architecture("llama");
  const std::string general = known != nullptr ? std::string(kind.general) : options.architecture;

  GgufWriter writer;
  writer.set_text("general.architecture", general);
  writer.set_text("general.name", options.name);
  writer.set_text("general.type", "model");
  writer.set_u32("general.file_type", file_type(options.weights));
  ModelBuilder builder(writer, general, options);
  kind.build(builder);
  if (const auto pooling = chosen_pooling(options, kind)) {
    builder.key("pooling_type", static_cast<std::uint32_t>(*pooling));
  }
  const Tokenizer tokenizer = chosen_tokenizer(options);
  if (auto set = set_tokenizer(writer, tokenizer, options.vocabulary); !set) {
    return fail(std::move(set).error());
  }
  if (options.chat_template && kind.generates) {
    writer.set_text("tokenizer.chat_template", *options.chat_template);
  }
  return writer;
}

std::vector<std::string> model_files(const std::string& path, std::uint32_t shards) {
  if (shards <= 1) return {path};
  constexpr std::string_view kExtension = ".gguf";
  std::string stem = path;
  if (stem.ends_with(kExtension)) stem.resize(stem.size() - kExtension.size());
  std::vector<std::string> files;
  for (std::uint32_t i = 1; i <= shards; ++i) {
    std::array<char, 48> tail{};
    std::snprintf(tail.data(), tail.size(), "-%05u-of-%05u.gguf", i, shards);
    files.push_back(stem + tail.data());
  }
  return files;
}

Result<std::vector<std::string>> write_model(const ModelOptions& options, const std::string& path) {
  auto model = make_model(options);
  if (!model) return fail(std::move(model).error());
  auto files = model_files(path, options.shards);
  const Status written =
      options.shards > 1 ? model->write_shards(files) : model->write(files.front());
  if (!written) return fail(written.error());
  return files;
}

}  // namespace berth::test_models
