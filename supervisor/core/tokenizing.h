#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/generation.h"

namespace berth::core {

// Questions about a model's vocabulary, free of any protocol's types.

struct TextInput {
  std::string text{};         // well-formed UTF-8, at most 4 MiB
  bool parse_special = true;  // names of control tokens in it become those tokens
  bool add_special = true;    // BOS comes in front where the model wants it
};

struct TokenizeRequest {
  std::string request_id{};
  std::string model{};
  std::variant<TextInput, ChatInput> input{};  // a chat: the tokens that a generation would read
};
struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::string> texts;  // the bytes of each, which may be a part of a character
};
// Of the same request.
struct TokenCount {
  std::uint32_t tokens = 0;
  std::uint32_t window = 0;  // that the model is served with
};

struct DetokenizeRequest {
  std::string request_id{};
  std::string model{};
  std::vector<std::int32_t> ids{};  // at most 2^20
  bool show_control = false;        // control tokens show as text
};
struct DetokenizedText {
  std::string text;  // UTF-8 unless the tokens end within a character
};

}  // namespace berth::core
