#include "common/chat_template_names.h"

#include <array>

// For builds that cannot ask libllama, as those with sanitizers, which have no berth-worker either.
// Source: llama_chat_builtin_templates() of llama.cpp 0.7.0.

namespace berth {
namespace {

constexpr auto kNames = std::to_array<std::string_view>({"bailing",
                                                         "bailing-think",
                                                         "bailing2",
                                                         "chatglm3",
                                                         "chatglm4",
                                                         "chatml",
                                                         "command-r",
                                                         "deepseek",
                                                         "deepseek-ocr",
                                                         "deepseek2",
                                                         "deepseek3",
                                                         "exaone-moe",
                                                         "exaone3",
                                                         "exaone4",
                                                         "falcon3",
                                                         "gemma",
                                                         "gigachat",
                                                         "glmedge",
                                                         "gpt-oss",
                                                         "granite",
                                                         "granite-4.0",
                                                         "granite-4.1",
                                                         "grok-2",
                                                         "hunyuan-dense",
                                                         "hunyuan-moe",
                                                         "hunyuan-vl",
                                                         "kimi-k2",
                                                         "llama2",
                                                         "llama2-sys",
                                                         "llama2-sys-bos",
                                                         "llama2-sys-strip",
                                                         "llama3",
                                                         "llama4",
                                                         "megrez",
                                                         "minicpm",
                                                         "mistral-v1",
                                                         "mistral-v3",
                                                         "mistral-v3-tekken",
                                                         "mistral-v7",
                                                         "mistral-v7-tekken",
                                                         "monarch",
                                                         "openchat",
                                                         "orion",
                                                         "pangu-embedded",
                                                         "phi3",
                                                         "phi4",
                                                         "rwkv-world",
                                                         "seed_oss",
                                                         "smolvlm",
                                                         "solar-open",
                                                         "vicuna",
                                                         "vicuna-orca",
                                                         "yandex",
                                                         "zephyr"});

}  // namespace

std::span<const std::string_view> chat_template_names() {
  return kNames;
}

}  // namespace berth
