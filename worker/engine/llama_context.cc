#include "worker/engine/llama_context.h"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace berth::worker {
namespace {

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

}  // namespace

llama_context_params context_parameters(const EngineSettings& settings, std::uint32_t threads,
                                        AbortCheck& abort_check) {
  auto parameters = llama_context_default_params();
  parameters.n_threads = static_cast<std::int32_t>(threads);
  parameters.n_threads_batch = static_cast<std::int32_t>(threads);
  parameters.type_k = kv_type(settings.kv_type).value_or(GGML_TYPE_F16);
  parameters.type_v = parameters.type_k;
  parameters.flash_attn_type = flash_attention(settings.flash_attention);
  parameters.no_perf = true;
  parameters.kv_unified = true;
  parameters.swa_full = false;
  parameters.abort_callback = [](void* data) {
    const auto& check = *static_cast<const AbortCheck*>(data);
    return check && check();
  };
  parameters.abort_callback_data = &abort_check;
  return parameters;
}

LlamaBatch::LlamaBatch(std::uint32_t capacity)
    : batch_(llama_batch_init(static_cast<std::int32_t>(capacity), 0, 1)), capacity_(capacity) {
  batch_.n_tokens = 0;
}

LlamaBatch::~LlamaBatch() {
  llama_batch_free(batch_);
}

void LlamaBatch::add(const BatchItem& item) {
  const auto i = static_cast<std::size_t>(batch_.n_tokens++);
  batch_.token[i] = item.token;
  batch_.pos[i] = static_cast<llama_pos>(item.position);
  batch_.n_seq_id[i] = 1;
  batch_.seq_id[i][0] = item.sequence;
  batch_.logits[i] = item.wants_output ? 1 : 0;
}

DecodeOutcome LlamaBatch::compute(llama_context* context, std::string& error,
                                  bool* no_cells) const {
  const bool encode = llama_get_memory(context) == nullptr;
  std::int32_t result = 0;
  try {
    result = encode ? llama_encode(context, batch_) : llama_decode(context, batch_);
    if (result == 0) llama_synchronize(context);
  } catch (const std::exception& problem) {
    error = problem.what();
    return DecodeOutcome::kFailed;
  }
  switch (result) {
    case 0:
      return DecodeOutcome::kDone;
    case 1:
      error = "no free cells in the KV cache";
      if (no_cells != nullptr) *no_cells = true;
      return DecodeOutcome::kFailed;
    case 2:
      return DecodeOutcome::kAborted;
    default:
      error = std::string(encode ? "llama_encode" : "llama_decode") + " returned " +
              std::to_string(result);
      return DecodeOutcome::kFailed;
  }
}

std::uint32_t keep_prefix(llama_context* context, SequenceId sequence, std::uint32_t tokens) {
  auto* const memory = llama_get_memory(context);
  if (memory == nullptr) return 0;
  const auto* const model = llama_get_model(context);
  const auto kept = static_cast<llama_pos>(tokens);
  if (tokens > 0 && llama_memory_seq_rm(memory, sequence, kept, -1)) {
    // A sliding window forgets old positions: what follows needs those of one window before it.
    const auto first = llama_memory_seq_pos_min(memory, sequence);
    const auto last = llama_memory_seq_pos_max(memory, sequence);
    const auto swa = llama_model_n_swa(model);
    const auto needed = swa > 0 ? std::max(0, kept - swa) : 0;
    if (last == kept - 1 && (has_state(model) || first <= needed)) return tokens;
  }
  llama_memory_seq_rm(memory, sequence, -1, -1);
  return 0;
}

bool has_state(const llama_model* model) {
  return llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
}

}  // namespace berth::worker
