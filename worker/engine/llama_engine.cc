#include "worker/engine/llama_engine.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "llama.h"
#include "worker/engine/backends.h"
#include "worker/engine/best_logit.h"
#include "worker/engine/build_id.h"
#include "worker/engine/cores.h"
#include "worker/engine/fixed_seed.h"
#include "worker/engine/llama_log.h"
#include "worker/engine/load_log.h"

namespace berth::worker {
namespace {

static_assert(LLAMA_DEFAULT_SEED == kRandomSeed);

constexpr std::uint32_t kAutoContextMax = 32768;
constexpr std::uint32_t kMicroBatch = 512;  // more costs memory and gains nothing on processors

struct ModelFree {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct ContextFree {
  void operator()(llama_context* context) const { llama_free(context); }
};
struct SamplerFree {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using ModelPointer = std::unique_ptr<llama_model, ModelFree>;
using ContextPointer = std::unique_ptr<llama_context, ContextFree>;
using SamplerPointer = std::unique_ptr<llama_sampler, SamplerFree>;

std::optional<ggml_type> kv_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, ggml_type>, 9> kTypes = {{
      {"f32", GGML_TYPE_F32},
      {"f16", GGML_TYPE_F16},
      {"bf16", GGML_TYPE_BF16},
      {"q8_0", GGML_TYPE_Q8_0},
      {"q5_1", GGML_TYPE_Q5_1},
      {"q5_0", GGML_TYPE_Q5_0},
      {"q4_1", GGML_TYPE_Q4_1},
      {"q4_0", GGML_TYPE_Q4_0},
      {"iq4_nl", GGML_TYPE_IQ4_NL},
  }};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

llama_flash_attn_type flash_attention(std::string_view name) {
  if (name == "on") return LLAMA_FLASH_ATTN_TYPE_ENABLED;
  if (name == "off") return LLAMA_FLASH_ATTN_TYPE_DISABLED;
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

bool is_device(std::string_view name) {
  const auto* const device = ggml_backend_dev_by_name(std::string(name).c_str());
  return device != nullptr && ggml_backend_dev_type(const_cast<ggml_backend_dev_t>(device)) !=
                                  GGML_BACKEND_DEVICE_TYPE_CPU;
}

// Bytes of the model's files. A split model is named by its first file; the others are found by
// their number.
std::uint64_t model_file_bytes(const std::string& path) {
  const auto size = [](const std::string& file) -> std::uint64_t {
    struct stat status {};
    return ::stat(file.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  };
  // "-00001-of-00003.gguf"
  constexpr std::size_t kTail = 20;
  if (path.size() <= kTail || path.compare(path.size() - kTail, 10, "-00001-of-") != 0) {
    return size(path);
  }
  int count = 0;
  std::from_chars(path.data() + path.size() - 10, path.data() + path.size() - 5, count);
  const auto prefix = path.substr(0, path.size() - kTail);
  std::uint64_t bytes = 0;
  for (int part = 0; part < count; ++part) {
    std::array<char, PATH_MAX> name{};
    if (llama_split_path(name.data(), name.size(), prefix.c_str(), part, count) > 0) {
      bytes += size(name.data());
    }
  }
  return bytes;
}

class LlamaSampler final : public Sampler {
 public:
  explicit LlamaSampler(SamplerPointer chain) : chain_(std::move(chain)) {}
  // Null: greedy.
  [[nodiscard]] llama_sampler* chain() const { return chain_.get(); }

 private:
  SamplerPointer chain_;
};

class LlamaEngine final : public Engine {
 public:
  explicit LlamaEngine(ModelPointer model)
      : model_(std::move(model)), vocabulary_(llama_model_get_vocab(model_.get())) {
    facts_.vocabulary = static_cast<std::uint32_t>(llama_vocab_n_tokens(vocabulary_));
    facts_.bos_text = token_text(llama_vocab_bos(vocabulary_));
    facts_.eos_text = token_text(llama_vocab_eos(vocabulary_));
    if (const char* const text = llama_model_chat_template(model_.get(), nullptr)) {
      facts_.chat_template = text;
    }
  }
  LlamaEngine(const LlamaEngine&) = delete;
  LlamaEngine& operator=(const LlamaEngine&) = delete;
  ~LlamaEngine() override {
    if (batch_.token != nullptr) llama_batch_free(batch_);
  }

  // Whether it has a context now; the reason is in libllama's log.
  bool make_context(const EngineSettings& settings);
  void set_memory(std::vector<MemoryUse> memory) { facts_.memory = std::move(memory); }
  [[nodiscard]] bool can_generate() const { return llama_get_memory(context_.get()) != nullptr; }

  [[nodiscard]] const EngineFacts& facts() const override { return facts_; }
  [[nodiscard]] Result<std::vector<TokenId>> tokenize(std::string_view text,
                                                      bool add_special) const override;
  void append_piece(TokenId token, std::string& out) const override;
  [[nodiscard]] bool ends_generation(TokenId token) const override {
    return llama_vocab_is_eog(vocabulary_, token);
  }
  [[nodiscard]] std::uint32_t longest_token_bytes() const override;

  std::uint32_t keep_prefix(SequenceId sequence, std::uint32_t tokens) override;
  DecodeOutcome decode(std::span<const BatchItem> batch, std::string& error) override;
  [[nodiscard]] std::unique_ptr<Sampler> make_sampler(const SamplingSettings& settings) override;
  Result<TokenId> sample(Sampler& sampler, std::size_t index) override;
  void set_abort_check(std::function<bool()> check) override { abort_check_ = std::move(check); }

 private:
  [[nodiscard]] std::string token_text(TokenId token) const {
    if (token == LLAMA_TOKEN_NULL) return {};
    std::array<char, 256> buffer;  // NOLINT(*-member-init): written by libllama
    const auto size =
        llama_token_to_piece(vocabulary_, token, buffer.data(), buffer.size(), 0, true);
    return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
  }
  // Whether the sequence's memory is one state (recurrent models) instead of a cell per token.
  [[nodiscard]] bool has_state() const {
    return llama_model_is_recurrent(model_.get()) || llama_model_is_hybrid(model_.get());
  }

  ModelPointer model_;
  const llama_vocab* vocabulary_;
  ContextPointer context_;
  llama_batch batch_{};
  EngineFacts facts_;
  std::function<bool()> abort_check_;
  std::vector<llama_token_data> candidates_;
};

bool LlamaEngine::make_context(const EngineSettings& settings) {
  const auto trained =
      static_cast<std::uint32_t>(std::max(1, llama_model_n_ctx_train(model_.get())));
  const auto window = settings.context != 0 ? settings.context : std::min(trained, kAutoContextMax);
  const auto threads = settings.threads != 0 ? settings.threads : usable_cores();
  auto parameters = llama_context_default_params();
  parameters.n_ctx = window;
  parameters.n_seq_max = settings.sequences;
  parameters.n_batch = settings.batch;
  parameters.n_ubatch = std::min(settings.batch, kMicroBatch);
  parameters.n_outputs_max = settings.sequences;  // one token of each is asked for
  parameters.n_threads = static_cast<std::int32_t>(threads);
  parameters.n_threads_batch = static_cast<std::int32_t>(threads);
  parameters.type_k = kv_type(settings.kv_type).value_or(GGML_TYPE_F16);
  parameters.type_v = parameters.type_k;
  parameters.flash_attn_type = flash_attention(settings.flash_attention);
  parameters.no_perf = true;
  parameters.kv_unified = true;  // one pool for all sequences (M4)
  parameters.swa_full = false;
  parameters.abort_callback = [](void* self) {
    const auto& check = static_cast<LlamaEngine*>(self)->abort_check_;
    return check && check();
  };
  parameters.abort_callback_data = this;
  context_.reset(llama_init_from_model(model_.get(), parameters));
  if (!context_) return false;

  // libllama rounds the window up; what was asked for is served.
  facts_.window = std::min(window, llama_n_ctx_seq(context_.get()));
  facts_.cells = llama_n_ctx(context_.get());
  facts_.sequences = settings.sequences;
  facts_.batch = std::min(settings.batch, llama_n_batch(context_.get()));
  facts_.threads = threads;
  facts_.build_id = llama_build_id();
  batch_ = llama_batch_init(static_cast<std::int32_t>(facts_.batch), 0, 1);
  candidates_.reserve(facts_.vocabulary);
  return true;
}

Result<std::vector<TokenId>> LlamaEngine::tokenize(std::string_view text, bool add_special) const {
  if (text.size() > static_cast<std::size_t>(INT32_MAX) / 2) {
    return fail(Reason::kInvalidArgument, "The text is longer than 1 GiB.");
  }
  const bool adds_bos = add_special && llama_vocab_get_add_bos(vocabulary_);
  if (adds_bos && !facts_.bos_text.empty() && text.starts_with(facts_.bos_text)) {
    text.remove_prefix(facts_.bos_text.size());
  }
  std::vector<TokenId> tokens;
  try {
    tokens.resize(text.size() + 8);
    const auto run = [&] {
      return llama_tokenize(vocabulary_, text.data(), static_cast<std::int32_t>(text.size()),
                            tokens.data(), static_cast<std::int32_t>(tokens.size()), add_special,
                            true);
    };
    auto count = run();
    if (count < 0 && count != INT32_MIN) {
      tokens.resize(static_cast<std::size_t>(-count));
      count = run();
    }
    if (count < 0) return fail(Reason::kInternal, "The model's tokenizer refused the text.");
    tokens.resize(static_cast<std::size_t>(count));
  } catch (const std::exception& problem) {
    return fail(Reason::kInternal, std::string("The model's tokenizer failed: ") + problem.what());
  }
  // Some models close every text with their EOS; a prompt is to be continued.
  if (add_special && llama_vocab_get_add_eos(vocabulary_) && !tokens.empty() &&
      tokens.back() == llama_vocab_eos(vocabulary_)) {
    tokens.pop_back();
  }
  return tokens;
}

void LlamaEngine::append_piece(TokenId token, std::string& out) const {
  std::array<char, 256> buffer;  // NOLINT(*-member-init): written by libllama
  const auto size =
      llama_token_to_piece(vocabulary_, token, buffer.data(), buffer.size(), 0, false);
  if (size >= 0) {
    out.append(buffer.data(), static_cast<std::size_t>(size));
    return;
  }
  std::string longer(static_cast<std::size_t>(-size), '\0');
  const auto again = llama_token_to_piece(vocabulary_, token, longer.data(), -size, 0, false);
  if (again > 0) out.append(longer.data(), static_cast<std::size_t>(again));
}

std::uint32_t LlamaEngine::longest_token_bytes() const {
  std::array<char, 256> buffer;  // NOLINT(*-member-init): written by libllama
  std::int32_t longest = 0;
  const auto count = static_cast<TokenId>(facts_.vocabulary);
  for (TokenId token = 0; token < count; ++token) {
    const auto size =
        llama_token_to_piece(vocabulary_, token, buffer.data(), buffer.size(), 0, true);
    longest = std::max(longest, std::abs(size));
  }
  return static_cast<std::uint32_t>(longest);
}

std::uint32_t LlamaEngine::keep_prefix(SequenceId sequence, std::uint32_t tokens) {
  auto* const memory = llama_get_memory(context_.get());
  const auto kept = static_cast<llama_pos>(tokens);
  if (tokens > 0 && llama_memory_seq_rm(memory, sequence, kept, -1)) {
    // A sliding window forgets old positions: what follows needs those of one window before it.
    const auto first = llama_memory_seq_pos_min(memory, sequence);
    const auto last = llama_memory_seq_pos_max(memory, sequence);
    const auto swa = llama_model_n_swa(model_.get());
    const auto needed = swa > 0 ? std::max(0, kept - swa) : 0;
    if (last == kept - 1 && (has_state() || first <= needed)) return tokens;
  }
  llama_memory_seq_rm(memory, sequence, -1, -1);
  return 0;
}

DecodeOutcome LlamaEngine::decode(std::span<const BatchItem> batch, std::string& error) {
  if (batch.empty() || batch.size() > facts_.batch) {
    error = "a batch of " + std::to_string(batch.size()) + " tokens";
    return DecodeOutcome::kFailed;
  }
  batch_.n_tokens = static_cast<std::int32_t>(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch_.token[i] = batch[i].token;
    batch_.pos[i] = static_cast<llama_pos>(batch[i].position);
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = batch[i].sequence;
    batch_.logits[i] = batch[i].wants_output ? 1 : 0;
  }
  std::int32_t result = 0;
  try {
    result = llama_decode(context_.get(), batch_);
    if (result == 0) llama_synchronize(context_.get());
  } catch (const std::exception& problem) {
    error = problem.what();
    return DecodeOutcome::kFailed;
  }
  switch (result) {
    case 0:
      return DecodeOutcome::kDone;
    case 1:
      error = "no free cells in the KV cache";
      return DecodeOutcome::kFailed;
    case 2:
      return DecodeOutcome::kAborted;
    default:
      error = "llama_decode returned " + std::to_string(result);
      return DecodeOutcome::kFailed;
  }
}

std::unique_ptr<Sampler> LlamaEngine::make_sampler(const SamplingSettings& settings) {
  if (settings.temperature == 0) return std::make_unique<LlamaSampler>(nullptr);
  auto parameters = llama_sampler_chain_default_params();
  parameters.no_perf = true;
  SamplerPointer chain(llama_sampler_chain_init(parameters));
  // The order of llama.cpp: cut first, then heat what is left.
  if (settings.top_k > 0) {
    const auto top_k = std::min(settings.top_k, facts_.vocabulary);
    llama_sampler_chain_add(chain.get(),
                            llama_sampler_init_top_k(static_cast<std::int32_t>(top_k)));
  }
  if (settings.top_p < 1) {
    llama_sampler_chain_add(chain.get(), llama_sampler_init_top_p(settings.top_p, 1));
  }
  llama_sampler_chain_add(chain.get(), llama_sampler_init_temp(settings.temperature));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_dist(fixed_seed(settings.seed)));
  return std::make_unique<LlamaSampler>(std::move(chain));
}

Result<TokenId> LlamaEngine::sample(Sampler& sampler, std::size_t index) {
  auto* const chain = static_cast<LlamaSampler&>(sampler).chain();
  float* const logits = llama_get_logits_ith(context_.get(), static_cast<std::int32_t>(index));
  if (logits == nullptr) return fail(Reason::kInternal, "The model computed no output.");
  std::int32_t suppressed = 0;
  const auto* const suppress = llama_vocab_get_suppress_tokens(vocabulary_, &suppressed);
  for (std::int32_t i = 0; i < suppressed; ++i) {
    if (suppress[i] >= 0 && static_cast<std::uint32_t>(suppress[i]) < facts_.vocabulary) {
      logits[suppress[i]] = -std::numeric_limits<float>::infinity();
    }
  }
  const auto count = facts_.vocabulary;
  const auto best = best_logit({logits, count});
  if (!best) {
    return fail(Reason::kInternal,
                "The model computed no usable probabilities (NaN or infinite). Its file may be "
                "damaged, or its weights need another KV type or flash attention off.");
  }
  if (chain == nullptr) return static_cast<TokenId>(*best);
  candidates_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    candidates_[i] = llama_token_data{static_cast<llama_token>(i), logits[i], 0.0F};
  }
  llama_token_data_array array{candidates_.data(), candidates_.size(), -1, false};
  try {
    llama_sampler_apply(chain, &array);
    if (array.selected < 0 || static_cast<std::size_t>(array.selected) >= array.size) {
      return fail(Reason::kInternal, "The sampler chose no token.");
    }
    const auto token = array.data[array.selected].id;
    llama_sampler_accept(chain, token);
    return token;
  } catch (const std::exception& problem) {
    return fail(Reason::kInternal, std::string("The sampler failed: ") + problem.what());
  }
}

// What the progress callback of libllama needs.
struct WeightsProgress {
  LoadObserver* observer;
  std::uint64_t bytes;
  bool cancelled;
};

bool on_weights_progress(float fraction, void* data) {
  auto& progress = *static_cast<WeightsProgress*>(data);
  if (progress.observer->cancelled()) {
    progress.cancelled = true;
    return false;
  }
  progress.observer->on_progress(LoadProgress{
      "weights", fraction,
      static_cast<std::uint64_t>(static_cast<double>(progress.bytes) * fraction), progress.bytes});
  return true;
}

// Lets the load's log lines go to `log` as long as it lives.
class LogObservation {
 public:
  explicit LogObservation(LoadLog& log) { LlamaLog::instance().observe(&log); }
  LogObservation(const LogObservation&) = delete;
  LogObservation& operator=(const LogObservation&) = delete;
  ~LogObservation() { LlamaLog::instance().observe(nullptr); }
};

LoadFailure cancelled_load() {
  return LoadFailure{"", "cancelled", true};
}

tl::expected<std::unique_ptr<Engine>, LoadFailure> load(const EngineSettings& settings,
                                                        LoadObserver& observer, LoadLog& log) {
  observer.on_progress(LoadProgress{"starting"});
  if (const auto loaded = load_cpu_backend(); !loaded) {
    return tl::unexpected(LoadFailure{"unclassified", loaded.error().message});
  }
  llama_backend_init();

  WeightsProgress progress{&observer, model_file_bytes(settings.model_path), false};
  auto parameters = llama_model_default_params();
  parameters.load_mode = LLAMA_LOAD_MODE_MMAP;
  parameters.progress_callback = &on_weights_progress;
  parameters.progress_callback_user_data = &progress;
  if (!on_weights_progress(0, &progress)) return tl::unexpected(cancelled_load());
  ModelPointer model(llama_model_load_from_file(settings.model_path.c_str(), parameters));
  if (progress.cancelled || observer.cancelled()) return tl::unexpected(cancelled_load());
  if (!model) {
    return tl::unexpected(
        log.failure(settings.model_path, "libllama did not say why the model cannot be loaded"));
  }
  if (!llama_model_has_decoder(model.get()) || llama_model_has_encoder(model.get()) ||
      llama_model_is_diffusion(model.get())) {
    return tl::unexpected(LoadFailure{
        "permanent", "the model is of a kind (encoder or diffusion) that cannot be served yet"});
  }

  // From on_vocabulary() on, another thread reads this engine for as long as the process lives. So
  // no failure below, be it an exception, may destroy it: it is given up on purpose (the process
  // ends after a failed load), and owned again only once it is complete.
  auto* const engine = std::make_unique<LlamaEngine>(std::move(model)).release();
  observer.on_vocabulary(*engine);
  observer.on_progress(LoadProgress{"context"});
  if (!engine->make_context(settings)) {
    return tl::unexpected(
        log.failure(settings.model_path, "libllama did not say why there is no context"));
  }
  if (observer.cancelled()) return tl::unexpected(cancelled_load());
  if (!engine->can_generate()) {
    return tl::unexpected(
        LoadFailure{"permanent", "the model only embeds, which cannot be served yet"});
  }
  engine->set_memory(log.memory());
  return std::unique_ptr<Engine>(engine);
}

void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20) {
      out.append("\\u00").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

std::string_view device_kind(enum ggml_backend_dev_type type) {
  switch (type) {
    case GGML_BACKEND_DEVICE_TYPE_CPU:
      return "cpu";
    case GGML_BACKEND_DEVICE_TYPE_GPU:
      return "gpu";
    case GGML_BACKEND_DEVICE_TYPE_IGPU:
      return "integrated_gpu";
    case GGML_BACKEND_DEVICE_TYPE_ACCEL:
      return "accelerator";
    default:
      return "other";
  }
}

}  // namespace

tl::expected<std::unique_ptr<Engine>, LoadFailure> load_llama_engine(const EngineSettings& settings,
                                                                     LoadObserver& observer) {
  LlamaLog::instance().install();
  LoadLog log(&is_device);
  const LogObservation observation(log);
  try {
    return load(settings, observer, log);
  } catch (const std::bad_alloc&) {
    return tl::unexpected(LoadFailure{"resource", "std::bad_alloc: no memory for the load"});
  } catch (const std::exception& problem) {
    return tl::unexpected(log.failure(settings.model_path, problem.what()));
  }
}

std::string llama_build_id() {
  return std::string("llama.cpp ") + llama_version() + ", ggml " + ggml_version() + " (" +
         loaded_build_ids("berth-worker") + ")";
}

std::string llama_devices_json() {
  LlamaLog::instance().install();
  load_all_backends();
  std::string json = "{\"devices\":[";
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    auto* const device = ggml_backend_dev_get(i);
    ggml_backend_dev_props properties{};
    ggml_backend_dev_get_props(device, &properties);
    const auto text = [](const char* value) { return std::string_view(value ? value : ""); };
    json.append(i == 0 ? "" : ",").append("{\"name\":");
    append_json(json, text(properties.name));
    json.append(",\"description\":");
    append_json(json, text(properties.description));
    json.append(",\"type\":");
    append_json(json, device_kind(properties.type));
    json.append(",\"id\":");
    append_json(json, text(properties.device_id));
    json.append(",\"free_bytes\":").append(std::to_string(properties.memory_free));
    json.append(",\"total_bytes\":").append(std::to_string(properties.memory_total)).append("}");
  }
  json.append("]}\n");
  return json;
}

}  // namespace berth::worker
