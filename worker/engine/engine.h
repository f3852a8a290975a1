#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "worker/engine/prompt_part.h"
#include "worker/engine/sampling.h"

namespace berth::worker {

using SequenceId = std::int32_t;
struct LoadFailure;

// Bytes that a load took from one memory domain: "host", or a device's name.
struct MemoryUse {
  std::string domain;
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t working_bytes = 0;  // compute and output buffers
  std::uint64_t mapped_bytes = 0;   // of the weights, those that are in the mapped file
};

// What a model is served for.
enum class Purpose : std::uint8_t { kGenerate, kEmbed };

// What is fixed once a model is loaded.
struct EngineFacts {
  std::string build_id;         // of the program, libllama and its backends
  std::uint32_t window = 0;     // tokens of one sequence, prompt and answer together
  std::uint32_t sequences = 0;  // sequence ids are 0 to sequences - 1
  std::uint32_t cells = 0;      // tokens that all sequences hold together (M4), at least one window
  std::uint32_t batch = 0;      // most tokens of one decode()
  std::uint32_t micro_batch = 0;  // most of them that are computed at once; sets the working memory
  std::uint32_t vocabulary = 0;
  std::uint32_t threads = 0;
  Purpose purpose = Purpose::kGenerate;
  std::uint32_t embedding_size = 0;  // numbers of one embedding; 0: it gives none
  std::string pooling;               // mean | cls | last | rank; empty: none
  std::uint32_t draft_tokens = 0;  // most tokens that draft() proposes; 0: there is no draft model
  // Whether copy_prefix() works: a cell may belong to several sequences.
  bool shares_cells = false;
  std::vector<MemoryUse> memory;
  std::vector<std::string> devices;  // that hold layers, by ggml's names; empty: the processor only
  std::uint32_t device_layers = 0;   // layers on them
  std::uint32_t layers = 0;          // of all; the output counts as one
  std::string chat_template;         // the model's own; empty: it has none
  std::string bos_text;              // empty: no such token
  std::string eos_text;
};

// How long the tokens of a vocabulary are.
struct TokenBytes {
  std::uint32_t longest = 0;  // bytes of the longest
  // Most bytes of a text that one token stands for, for fewest_tokens(); 0: there is no bound, as
  // the tokenizer may leave out what it does not know, or make one token of it.
  std::uint32_t bound = 0;
};

// One token of a batch.
struct BatchItem {
  SequenceId sequence = 0;
  TokenId token = 0;
  std::uint32_t position = 0;
  bool wants_output = false;  // sample() will be called for it
};

enum class DecodeOutcome : std::uint8_t {
  kDone,
  kAborted,  // the abort check said so; the caller truncates the sequences
  kFailed,   // ditto; the engine stays usable
};

// What one call of Engine::draft() may do at most.
struct DraftLimits {
  std::size_t read = 0;       // tokens of the text, besides the proposals
  std::size_t proposals = 0;  // tokens
};

// What it did.
struct DraftStep {
  std::size_t read = 0;  // tokens of the text
  // Whether the draft model knows the whole text: where it proposes nothing then, it has no guess.
  bool caught_up = false;
};

// State of one generation's sampling: penalties, grammar, random numbers. Made on any thread, used
// by one at a time, and never after its engine.
class Sampler {
 public:
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  virtual ~Sampler() = default;

  // Tokens that stand before the answer, for the penalties; the grammar does not see them.
  virtual void accept_prompt(std::span<const TokenId> tokens) = 0;
};

// A loaded model with its context: the seam between lanes and libllama. The real one (LlamaEngine)
// is the only code that knows libllama's types; tests have one of their own.
//
// Functions of the vocabulary may be called from any thread, everything else only from the context
// thread. The engine lives as long as that thread. No exception leaves it.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  [[nodiscard]] virtual const EngineFacts& facts() const = 0;

  // --- vocabulary: any thread

  // Tokens of a well-formed UTF-8 text. Names of special tokens in it become those tokens; BOS (and
  // what else the model wants in front) is added where `add_special` and the model says so, but
  // never twice. Errors: kInternal where libllama refuses the text.
  [[nodiscard]] virtual Result<std::vector<TokenId>> tokenize(std::string_view text,
                                                              bool add_special) const = 0;
  // The tokens of a whole text as the model was trained to read it: in which nothing is a command,
  // and with all that the model wants around it (BOS, CLS; EOS, SEP).
  [[nodiscard]] virtual Result<std::vector<TokenId>> tokenize_whole(
      std::string_view text) const = 0;
  // As tokenize() of all parts one behind the other, but literal parts become no control tokens.
  [[nodiscard]] virtual Result<std::vector<TokenId>> tokenize_parts(
      std::span<const PromptPart> parts, bool add_special) const = 0;
  // Texts of the control tokens. Looks at the whole vocabulary: up to some milliseconds.
  [[nodiscard]] virtual std::vector<std::string> control_texts() const = 0;
  // The control token with this text; nothing where there is none.
  [[nodiscard]] virtual std::optional<TokenId> control_token(std::string_view text) const = 0;
  // Appends the bytes of a token, which may be a part of a character. Control tokens have none
  // unless `show_control`.
  virtual void append_piece(TokenId token, std::string& out, bool show_control = false) const = 0;
  // Whether the model ends its answer with this token.
  [[nodiscard]] virtual bool ends_generation(TokenId token) const = 0;
  // Looks at the whole vocabulary: up to some milliseconds.
  [[nodiscard]] virtual TokenBytes token_bytes() const = 0;
  // Ready for sampling; only once the load is complete, as the penalties look back over a window.
  // Errors: kInvalidArgument where the grammar or a setting cannot be used.
  [[nodiscard]] virtual Result<std::unique_ptr<Sampler>> make_sampler(
      const SamplingSettings& settings) const = 0;

  // --- context: context thread

  // Keeps the first `tokens` positions of a sequence and forgets the rest. Returns how many it
  // could keep: `tokens`, or 0 where the model's memory cannot be cut there.
  virtual std::uint32_t keep_prefix(SequenceId sequence, std::uint32_t tokens) = 0;

  // Computes one batch of at most facts().batch tokens. On kFailed, `error` says why.
  virtual DecodeOutcome decode(std::span<const BatchItem> batch, std::string& error) = 0;

  // The next token behind item `index` of the last batch; the sampler has accepted it. Errors:
  // kInternal where the model computed no usable probabilities; kInvalidArgument where the grammar
  // allows no token at all, or is too ambiguous.
  virtual Result<SampledToken> sample(Sampler& sampler, std::size_t index) = 0;

  // Proposes what could come after `tokens`, which `sequence` holds or is about to hold; appended
  // to `out`; nothing where it has no good guess. A draft model has to read the text as well: one
  // that is far behind reads a part of it in each call, within the limits, and proposes nothing
  // until it has caught up. Asks the abort check. Only with facts().draft_tokens.
  virtual DraftStep draft(SequenceId sequence, std::span<const TokenId> tokens, DraftLimits limits,
                          std::vector<TokenId>& out) = 0;

  // Makes the draft model forget what it has read in `sequence`; nothing where there is none.
  virtual void forget_draft(SequenceId sequence) = 0;

  // Makes `to` hold the first `tokens` positions of `from` and nothing else, in the same cells.
  // Returns how many it holds then: `tokens`, or 0. Only with facts().shares_cells.
  virtual std::uint32_t copy_prefix(SequenceId from, SequenceId to, std::uint32_t tokens) = 0;

  // One embedding per input, each of 1 to facts().batch tokens, all together at most
  // facts().batch tokens and facts().sequences inputs. Only with Purpose::kEmbed; leaves the
  // context empty. An embedding that is not usable (numbers that are not finite) is empty; inputs
  // beside it may suffer from it. On kFailed, `error` says why.
  virtual DecodeOutcome embed(std::span<const std::vector<TokenId>> inputs,
                              std::vector<std::vector<float>>& out, std::string& error) = 0;

  // Compute threads from the next batch on; 1 to facts().threads.
  virtual void set_threads(std::uint32_t threads) = 0;

  // Asked again and again within decode(); returns whether to give up. Also a sign of progress.
  // Must be cheap. Replaces the one before; between batches.
  virtual void set_abort_check(std::function<bool()> check) = 0;

  // Does `work` as a part of the load, from which it differs in nothing when it fails: what the
  // runtime logs meanwhile has a class, as an allocation of which it logs what was refused (L15).
  // An engine without a log has only the error itself. Errors: that of `work`, with its class.
  virtual tl::expected<void, LoadFailure> do_within_load(const std::function<Status()>& work);
};

// --- loading

struct EngineSettings {
  std::string model_path = {};
  std::uint32_t context = 0;  // tokens of the pool that the sequences share, and of the longest
                              // one; 0: as the model was trained, up to 32768
  std::uint32_t sequences = 1;
  std::uint32_t threads = 0;  // 0: the cores that this process may use
  std::uint32_t batch = 512;
  std::string kv_type = "f16";
  std::string flash_attention = "auto";  // auto | on | off
  Purpose purpose = Purpose::kGenerate;  // a model that can only embed does so in any case
  // mean | cls | last; empty: as the file says, else what suits the model.
  std::string pooling = {};
  // Where the layers go. No devices: the processor, and no backend but the processor's is loaded.
  std::vector<std::string> devices = {};            // ggml's names, e.g. CUDA0
  std::optional<std::uint32_t> device_layers = {};  // nothing: all
  std::vector<float> device_split = {};             // share of each device; empty: by free memory
  std::string draft_path = {};                      // empty: none
  std::uint32_t draft_tokens = 8;
  std::vector<std::pair<std::string, float>> adapters = {};  // path, scale
};

struct LoadProgress {
  std::string_view phase;  // starting | weights | context | warmup; static storage
  float fraction = 0;      // 0 to 1 within the phase
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

// Why a load failed by itself.
struct LoadFailure {
  std::string failure_class;  // permanent | resource | unclassified
  std::string reason;         // one line, without the model's path
  bool cancelled = false;     // given up because the observer said so; no failure
};

// Told about a load, on the context thread.
class LoadObserver {
 public:
  LoadObserver() = default;
  LoadObserver(const LoadObserver&) = delete;
  LoadObserver& operator=(const LoadObserver&) = delete;
  virtual ~LoadObserver() = default;

  virtual void on_progress(const LoadProgress& progress) = 0;
  // The vocabulary of `engine` and the texts of its facts can be used from now on; it has no
  // context yet. They are read by other threads from then on, so the engine must outlive the
  // process also where the load fails after this.
  virtual void on_vocabulary(const Engine& engine) = 0;
  // Whether to give up.
  [[nodiscard]] virtual bool cancelled() const = 0;
};

}  // namespace berth::worker
