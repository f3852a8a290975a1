#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "tests/models/gguf_writer.h"
#include "tests/models/tokenizers.h"

namespace berth::test_models {

// ChatML with a generation prompt, no default system prompt.
inline constexpr std::string_view kChatMlTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// What libllama makes of the last layer's output where it embeds (llama_pooling_type).
enum class Pooling : std::uint8_t { kNone = 0, kMean = 1, kCls = 2, kLast = 3 };

// A model with random weights. It loads and generates words without sense; unless `tied_output`,
// greedy decoding never ends by itself. The defaults make 0.5 MB of the llama architecture that
// load in a few milliseconds. The same options always give the same bytes. Where it matters the
// layers alternate: the second, fourth and so on have attention (hybrids) or no window (gemma).
struct ModelOptions {
  std::string name = "random";  // general.name
  // A name of all_architectures(); another one: llama, and only the name differs.
  std::string architecture = "llama";
  std::uint32_t layers = 2;
  std::uint32_t heads = 4;     // divides `embedding` into even parts
  std::uint32_t kv_heads = 2;  // divides `heads`
  std::uint32_t embedding = 64;
  std::uint32_t feed_forward = 128;                   // of each expert, too
  std::uint32_t vocabulary = 1024;                    // tokens
  std::uint32_t context = 1024;                       // tokens
  TensorType weights = TensorType::kF16;              // of the matrices; norms are f32
  std::optional<Tokenizer> tokenizer = std::nullopt;  // default: chosen_tokenizer()
  // Not written for models that do not generate.
  std::optional<std::string> chat_template = std::string(kChatMlTemplate);
  bool tied_output = false;  // no output.weight: the embedding's is used
  std::uint32_t shards = 1;
  std::uint64_t seed = 1;
  std::uint32_t experts = 4;  // of a mixture
  std::uint32_t experts_used = 2;
  std::uint32_t sliding_window = 32;              // tokens
  std::optional<Pooling> pooling = std::nullopt;  // default: mean for encoders, none for others
  // The factor by which layers after the first `early_layers` add less to what the layers before
  // them said: near 0 the early layers alone would say nearly the same.
  float later_layers = 1.0F;
  std::uint32_t early_layers = 1;
  // What the logits are multiplied by. With 1 all words are nearly as likely; with 20 the model is
  // as sure of its words as a trained one, and greedily says the same.
  float sureness = 1.0F;
};

// BPE, or WPM for encoders.
Tokenizer chosen_tokenizer(const ModelOptions& options);

// Sizes for a purpose: "200m" is a llama of 207 million parameters, for benchmarks. Empty: there is
// none of that name.
std::optional<ModelOptions> preset(std::string_view name);

// The model, ready to be changed and written. Errors: kInvalidArgument, where the options do not
// fit together.
Result<GgufWriter> make_model(const ModelOptions& options);

// Writes it; with more than one shard "x.gguf" becomes "x-00001-of-00003.gguf" and so on. Returns
// the files, first shard first. Errors: as make_model(), or kInternal.
Result<std::vector<std::string>> write_model(const ModelOptions& options, const std::string& path);

// The files that write_model() makes.
std::vector<std::string> model_files(const std::string& path, std::uint32_t shards);

}  // namespace berth::test_models
