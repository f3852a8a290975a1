#include "worker/engine/llama_engine.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "common/cores.h"
#include "worker/engine/llama_devices.h"
#include "worker/engine/llama_load.h"
#include "worker/engine/llama_log.h"
#include "worker/engine/load_log.h"

namespace berth::worker {
namespace {

constexpr std::uint32_t kAutoContextMax = 32768;
// An embedding's whole input is one micro-batch, whose working memory grows with it.
constexpr std::uint32_t kEmbedMax = 8192;

}  // namespace

LlamaEngine::LlamaEngine(ModelPointer model, const ModelKind& kind)
    : model_(std::move(model)), kind_(kind), vocabulary_(llama_model_get_vocab(model_.get())) {
  facts_.vocabulary = vocabulary_.size();
  facts_.bos_text = vocabulary_.text(llama_vocab_bos(vocabulary_.get()));
  facts_.eos_text = vocabulary_.text(llama_vocab_eos(vocabulary_.get()));
  facts_.layers = static_cast<std::uint32_t>(llama_model_n_layer(model_.get())) + 1;
  if (const char* const text = llama_model_chat_template(model_.get(), nullptr)) {
    facts_.chat_template = text;
  }
}

std::uint32_t LlamaEngine::window_for(const EngineSettings& settings) const {
  const auto trained =
      static_cast<std::uint32_t>(std::max(1, llama_model_n_ctx_train(model_.get())));
  const bool embeds = kind_.purpose == Purpose::kEmbed;
  auto window = settings.context != 0 ? settings.context : std::min(trained, kAutoContextMax);
  if (embeds) window = std::min(window, kEmbedMax);
  return kind_.fixed_window ? std::min(window, trained) : window;
}

bool LlamaEngine::make_context(const EngineSettings& settings) {
  if (!make_context_once(settings)) return false;
  if (kind_.purpose == Purpose::kEmbed || llama_get_memory(context_.get()) != nullptr) return true;
  kind_ = memoryless_kind(settings);
  return make_context_once(settings);
}

bool LlamaEngine::make_context_once(const EngineSettings& settings) {
  const auto window = window_for(settings);
  const auto threads = settings.threads != 0 ? settings.threads : usable_cores();
  auto parameters = context_parameters(settings, threads, abort_check_);
  parameters.n_ctx = window;
  parameters.n_seq_max = settings.sequences;
  if (kind_.purpose == Purpose::kEmbed) {
    parameters.embeddings = true;
    parameters.pooling_type = kind_.pooling;
    // libllama reserves its graph for equally long sequences, and aborts the process where a
    // micro-batch does not divide into them.
    parameters.n_ubatch =
        (window + settings.sequences - 1) / settings.sequences * settings.sequences;
    parameters.n_batch = parameters.n_ubatch;
    parameters.n_ctx = parameters.n_ubatch;
  } else {
    // One token of each sequence is asked for, and one behind each draft token.
    const auto outputs = 1 + (settings.draft_path.empty() ? 0 : settings.draft_tokens);
    parameters.n_batch = settings.batch;
    parameters.n_ubatch = std::min(settings.batch, kMicroBatch);
    parameters.n_outputs_max = std::min(settings.sequences * outputs, parameters.n_ubatch);
  }
  embedder_.reset();
  context_.reset(llama_init_from_model(model_.get(), parameters));
  if (!context_) return false;
  set_context_facts(settings, window, threads);
  return true;
}

void LlamaEngine::set_context_facts(const EngineSettings& settings, std::uint32_t window,
                                    std::uint32_t threads) {
  auto* const context = context_.get();
  const bool embeds = kind_.purpose == Purpose::kEmbed;
  // libllama rounds the window up; what was asked for is served.
  facts_.window = std::min(window, llama_n_ctx_seq(context));
  facts_.cells = llama_n_ctx(context);
  facts_.sequences = settings.sequences;
  facts_.batch = std::min(embeds ? window : settings.batch, llama_n_batch(context));
  facts_.micro_batch = std::min(facts_.batch, llama_n_ubatch(context));
  facts_.threads = threads;
  facts_.build_id = llama_build_id();
  facts_.purpose = kind_.purpose;
  facts_.pooling = pooling_name(kind_.pooling);
  facts_.shares_cells = !embeds && llama_get_memory(context) != nullptr &&
                        !has_state(model_.get()) && llama_model_n_swa(model_.get()) == 0;
  if (embeds) {
    facts_.embedding_size = static_cast<std::uint32_t>(llama_model_n_embd_out(model_.get()));
    embedder_.emplace(context, facts_.batch, facts_.window);
  } else {
    batch_.emplace(facts_.batch);
    candidates_.reserve(facts_.vocabulary);
  }
}

bool LlamaEngine::put_on(LlamaAdapters adapters) {
  adapters_ = std::move(adapters);
  return adapters_.put_on(context_.get());
}

bool LlamaEngine::make_drafter(ModelPointer model, const EngineSettings& settings) {
  const LlamaDrafter::Sizes sizes{facts_.window, facts_.cells, facts_.batch, facts_.threads,
                                  facts_.vocabulary};
  drafter_ = LlamaDrafter::make(std::move(model), settings, sizes, abort_check_);
  facts_.draft_tokens = drafter_ ? settings.draft_tokens : 0;
  return drafter_ != nullptr;
}

void LlamaEngine::set_memory(std::vector<MemoryUse> memory, const EngineSettings& settings) {
  facts_.memory = std::move(memory);
  for (const auto& name : settings.devices) {
    const bool used = std::any_of(
        facts_.memory.begin(), facts_.memory.end(),
        [&](const MemoryUse& use) { return use.domain == name && use.weights_bytes > 0; });
    if (used) facts_.devices.push_back(name);
  }
}

void LlamaEngine::set_layers(std::uint32_t device_layers, std::uint32_t layers) {
  if (layers == 0) return;
  facts_.device_layers = device_layers;
  facts_.layers = layers;
}

Result<std::vector<TokenId>> LlamaEngine::tokenize(std::string_view text, bool add_special) const {
  return vocabulary_.tokenize(text, add_special);
}

Result<std::vector<TokenId>> LlamaEngine::tokenize_whole(std::string_view text) const {
  return vocabulary_.tokenize_whole(text);
}

Result<std::vector<TokenId>> LlamaEngine::tokenize_parts(std::span<const PromptPart> parts,
                                                         bool add_special) const {
  return vocabulary_.tokenize_parts(parts, add_special);
}

std::vector<std::string> LlamaEngine::control_texts() const {
  return vocabulary_.control_texts();
}

std::optional<TokenId> LlamaEngine::control_token(std::string_view text) const {
  return vocabulary_.control_token(text);
}

void LlamaEngine::append_piece(TokenId token, std::string& out, bool show_control) const {
  vocabulary_.append_piece(token, out, show_control);
}

bool LlamaEngine::ends_generation(TokenId token) const {
  return vocabulary_.ends_generation(token);
}

Result<std::unique_ptr<Sampler>> LlamaEngine::make_sampler(const SamplingSettings& settings) const {
  return LlamaSampler::make(vocabulary_.get(), settings, facts_.window, &token_starts_,
                            &dry_cache_);
}

std::uint32_t LlamaEngine::keep_prefix(SequenceId sequence, std::uint32_t tokens) {
  return worker::keep_prefix(context_.get(), sequence, tokens);
}

DecodeOutcome LlamaEngine::decode(std::span<const BatchItem> batch, std::string& error) {
  if (embedder_) {
    error = "the model is served for embeddings only";
    return DecodeOutcome::kFailed;
  }
  if (batch.empty() || batch.size() > facts_.batch) {
    error = "a batch of " + std::to_string(batch.size()) + " tokens";
    return DecodeOutcome::kFailed;
  }
  batch_->clear();
  for (const auto& item : batch) batch_->add(item);
  return batch_->compute(context_.get(), error);
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

tl::expected<void, LoadFailure> LlamaEngine::do_within_load(const std::function<Status()>& work) {
  LoadLog log(&is_device);
  const LogObservation observation(log);
  if (const auto done = work(); !done) {
    return tl::unexpected(failure_within_load(log, done.error().message));
  }
  return {};
}

DraftStep LlamaEngine::draft(SequenceId sequence, std::span<const TokenId> tokens,
                             DraftLimits limits, std::vector<TokenId>& out) {
  if (!drafter_) return {};
  limits.proposals = std::min<std::size_t>(limits.proposals, facts_.draft_tokens);
  return drafter_->draft(sequence, tokens, limits, out);
}

void LlamaEngine::forget_draft(SequenceId sequence) {
  if (drafter_) drafter_->forget(sequence);
}

std::uint32_t LlamaEngine::copy_prefix(SequenceId from, SequenceId to, std::uint32_t tokens) {
  auto* const memory = llama_get_memory(context_.get());
  if (from == to) return keep_prefix(to, tokens);
  if (memory == nullptr) return 0;
  llama_memory_seq_rm(memory, to, -1, -1);
  // Elsewhere a copy of a part would end the process.
  const auto wanted = static_cast<llama_pos>(tokens);
  if (!facts_.shares_cells || tokens == 0 || llama_memory_seq_pos_min(memory, from) != 0 ||
      llama_memory_seq_pos_max(memory, from) < wanted - 1) {
    return 0;
  }
  llama_memory_seq_cp(memory, from, to, 0, wanted);
  if (llama_memory_seq_pos_max(memory, to) == wanted - 1) return tokens;
  llama_memory_seq_rm(memory, to, -1, -1);
  return 0;
}

DecodeOutcome LlamaEngine::embed(std::span<const std::vector<TokenId>> inputs,
                                 std::vector<std::vector<float>>& out, std::string& error) {
  if (embedder_) return embedder_->embed(inputs, out, error);
  error = "the model is not served for embeddings";
  return DecodeOutcome::kFailed;
}

void LlamaEngine::set_threads(std::uint32_t threads) {
  const auto count =
      static_cast<std::int32_t>(std::clamp<std::uint32_t>(threads, 1, facts_.threads));
  llama_set_n_threads(context_.get(), count, count);
  if (drafter_) drafter_->set_threads(count);
}

}  // namespace berth::worker
