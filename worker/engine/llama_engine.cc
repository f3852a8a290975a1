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
#include "worker/engine/build_id.h"
#include "worker/engine/cores.h"
#include "worker/engine/llama_handles.h"
#include "worker/engine/llama_log.h"
#include "worker/engine/llama_sampler.h"
#include "worker/engine/llama_vocabulary.h"
#include "worker/engine/load_log.h"

namespace berth::worker {
namespace {

constexpr std::uint32_t kAutoContextMax = 32768;
constexpr std::uint32_t kMicroBatch = 512;  // more costs memory and gains nothing on processors

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

class LlamaEngine final : public Engine {
 public:
  explicit LlamaEngine(ModelPointer model)
      : model_(std::move(model)), vocabulary_(llama_model_get_vocab(model_.get())) {
    facts_.vocabulary = vocabulary_.size();
    facts_.bos_text = vocabulary_.text(llama_vocab_bos(vocabulary_.get()));
    facts_.eos_text = vocabulary_.text(llama_vocab_eos(vocabulary_.get()));
    facts_.layers = static_cast<std::uint32_t>(llama_model_n_layer(model_.get()));
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
                                                      bool add_special) const override {
    return vocabulary_.tokenize(text, add_special);
  }
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_parts(std::span<const PromptPart> parts,
                                                            bool add_special) const override {
    return vocabulary_.tokenize_parts(parts, add_special);
  }
  [[nodiscard]] std::vector<std::string> control_texts() const override {
    return vocabulary_.control_texts();
  }
  [[nodiscard]] std::optional<TokenId> control_token(std::string_view text) const override {
    return vocabulary_.control_token(text);
  }
  void append_piece(TokenId token, std::string& out, bool show_control) const override {
    vocabulary_.append_piece(token, out, show_control);
  }
  [[nodiscard]] bool ends_generation(TokenId token) const override {
    return vocabulary_.ends_generation(token);
  }
  [[nodiscard]] std::uint32_t longest_token_bytes() const override {
    return vocabulary_.longest_token_bytes();
  }
  [[nodiscard]] Result<std::unique_ptr<Sampler>> make_sampler(
      const SamplingSettings& settings) const override {
    return LlamaSampler::make(vocabulary_.get(), settings);
  }

  std::uint32_t keep_prefix(SequenceId sequence, std::uint32_t tokens) override;
  DecodeOutcome decode(std::span<const BatchItem> batch, std::string& error) override;
  Result<SampledToken> sample(Sampler& sampler, std::size_t index) override;
  void draft(SequenceId sequence, std::span<const TokenId> tokens, std::size_t most,
             std::vector<TokenId>& out) override;
  std::uint32_t copy_prefix(SequenceId from, SequenceId to, std::uint32_t tokens) override;
  DecodeOutcome embed(std::span<const std::vector<TokenId>> inputs,
                      std::vector<std::vector<float>>& out, std::string& error) override;
  void set_threads(std::uint32_t threads) override;
  void set_abort_check(std::function<bool()> check) override { abort_check_ = std::move(check); }

 private:
  // Whether the sequence's memory is one state (recurrent models) instead of a cell per token.
  [[nodiscard]] bool has_state() const {
    return llama_model_is_recurrent(model_.get()) || llama_model_is_hybrid(model_.get());
  }

  ModelPointer model_;
  LlamaVocabulary vocabulary_;
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

Result<SampledToken> LlamaEngine::sample(Sampler& sampler, std::size_t index) {
  float* const logits = llama_get_logits_ith(context_.get(), static_cast<std::int32_t>(index));
  if (logits == nullptr) return fail(Reason::kInternal, "The model computed no output.");
  std::int32_t suppressed = 0;
  const auto* const suppress = llama_vocab_get_suppress_tokens(vocabulary_.get(), &suppressed);
  for (std::int32_t i = 0; i < suppressed; ++i) {
    if (suppress[i] >= 0 && static_cast<std::uint32_t>(suppress[i]) < facts_.vocabulary) {
      logits[suppress[i]] = -std::numeric_limits<float>::infinity();
    }
  }
  return static_cast<LlamaSampler&>(sampler).choose({logits, facts_.vocabulary}, candidates_);
}

void LlamaEngine::draft(SequenceId /*sequence*/, std::span<const TokenId> /*tokens*/,
                        std::size_t /*most*/, std::vector<TokenId>& /*out*/) {}

std::uint32_t LlamaEngine::copy_prefix(SequenceId /*from*/, SequenceId to,
                                       std::uint32_t /*tokens*/) {
  return keep_prefix(to, 0);
}

DecodeOutcome LlamaEngine::embed(std::span<const std::vector<TokenId>> /*inputs*/,
                                 std::vector<std::vector<float>>& /*out*/, std::string& error) {
  error = "the model is not served for embeddings";
  return DecodeOutcome::kFailed;
}

void LlamaEngine::set_threads(std::uint32_t threads) {
  const auto count =
      static_cast<std::int32_t>(std::clamp<std::uint32_t>(threads, 1, facts_.threads));
  llama_set_n_threads(context_.get(), count, count);
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

}  // namespace berth::worker
