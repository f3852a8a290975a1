#include "worker/engine/llama_kind.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "gguf.h"

namespace berth::worker {
namespace {

constexpr std::array<std::pair<PoolingType, std::string_view>, 4> kPoolings = {{
    {LLAMA_POOLING_TYPE_MEAN, "mean"},
    {LLAMA_POOLING_TYPE_CLS, "cls"},
    {LLAMA_POOLING_TYPE_LAST, "last"},
    {LLAMA_POOLING_TYPE_RANK, "rank"},
}};

// Decoders with learned positions, as libllama knows them.
constexpr std::array<std::string_view, 2> kPositionTables = {"gpt2", "starcoder"};

PoolingType pooling_from_name(std::string_view name) {
  for (const auto& [type, known] : kPoolings) {
    if (known == name) return type;
  }
  return LLAMA_POOLING_TYPE_NONE;
}

// A value of the file's metadata as text; empty: there is none.
std::string metadata(const llama_model* model, const std::string& key) {
  std::array<char, 256> value{};
  const auto size = llama_model_meta_val_str(model, key.c_str(), value.data(), value.size());
  return size > 0 ? std::string(value.data()) : std::string();
}

PoolingType pooling_in_file(const llama_model* model, const std::string& architecture) {
  const auto text = metadata(model, architecture + ".pooling_type");
  int number = LLAMA_POOLING_TYPE_NONE;
  std::from_chars(text.data(), text.data() + text.size(), number);
  for (const auto& known : kPoolings) {
    if (known.first == number) return known.first;
  }
  return LLAMA_POOLING_TYPE_NONE;
}

tl::unexpected<LoadFailure> refused(std::string reason) {
  return tl::unexpected(LoadFailure{"permanent", std::move(reason)});
}

struct GgufFree {
  void operator()(gguf_context* context) const { gguf_free(context); }
};

}  // namespace

tl::expected<ModelKind, LoadFailure> kind_of(const llama_model* model,
                                             const EngineSettings& settings) {
  const bool decodes = llama_model_has_decoder(model);
  if (decodes && llama_model_has_encoder(model)) {
    return refused("the model has an encoder and a decoder (as T5 has), which cannot be served");
  }
  if (llama_model_is_diffusion(model)) {
    return refused("the model generates by diffusion, which cannot be served");
  }
  const auto architecture = metadata(model, "general.architecture");
  const auto in_file = pooling_in_file(model, architecture);
  if (in_file == LLAMA_POOLING_TYPE_RANK) {
    return refused("the model is a reranker (its pooling type is rank), which cannot be served");
  }
  ModelKind kind;
  kind.causal = decodes && metadata(model, architecture + ".attention.causal") != "false";
  kind.fixed_window = !kind.causal || std::find(kPositionTables.begin(), kPositionTables.end(),
                                                architecture) != kPositionTables.end();
  const bool embeds =
      settings.purpose == Purpose::kEmbed || !kind.causal || in_file != LLAMA_POOLING_TYPE_NONE;
  if (!embeds) return kind;
  kind.purpose = Purpose::kEmbed;
  kind.pooling = settings.pooling.empty() ? in_file : pooling_from_name(settings.pooling);
  if (kind.pooling == LLAMA_POOLING_TYPE_NONE) {
    kind.pooling = kind.causal ? LLAMA_POOLING_TYPE_LAST : LLAMA_POOLING_TYPE_MEAN;
  }
  return kind;
}

ModelKind memoryless_kind(const EngineSettings& settings) {
  const auto set = pooling_from_name(settings.pooling);
  const auto pooling = set == LLAMA_POOLING_TYPE_NONE ? LLAMA_POOLING_TYPE_MEAN : set;
  return ModelKind{Purpose::kEmbed, pooling, false, true};
}

std::string_view pooling_name(PoolingType pooling) {
  for (const auto& [type, name] : kPoolings) {
    if (type == pooling) return name;
  }
  return {};
}

std::optional<LoadFailure> not_a_model(const std::string& path) {
  const std::unique_ptr<gguf_context, GgufFree> file(
      gguf_init_from_file(path.c_str(), gguf_init_params{true, nullptr}));
  if (!file) return std::nullopt;
  const auto key = gguf_find_key(file.get(), "general.type");
  if (key < 0 || gguf_get_kv_type(file.get(), key) != GGUF_TYPE_STRING) return std::nullopt;
  const std::string_view type(gguf_get_val_str(file.get(), key));
  if (type == "mmproj") {
    return LoadFailure{"permanent",
                       "the file is a projector (mmproj), which belongs to a model and is none"};
  }
  if (type == "adapter") {
    return LoadFailure{"permanent",
                       "the file is an adapter (LoRA), which belongs to a model and is none"};
  }
  return std::nullopt;
}

}  // namespace berth::worker
