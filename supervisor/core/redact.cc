#include "supervisor/core/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"

namespace berth::core {
namespace {

// A bound on what is looked at; longer lines are no message for a person.
constexpr std::size_t kLongestLine = 65536;

constexpr std::array<std::string_view, 13> kModelExtensions = {
    "gguf", "ggml", "safetensors", "bin",   "pt",  "pth", "npz",
    "onnx", "json", "jinja",       "model", "txt", "py"};

struct Token {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Token> tokens_of(std::string_view line) {
  std::vector<Token> tokens;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t begin = line.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    tokens.push_back({begin, end});
    at = end;
  }
  return tokens;
}

bool path_shaped(std::string_view token) {
  return token.find_first_of("/\\") != token.npos;
}

bool ends_in_model_extension(std::string_view token) {
  while (!token.empty() && std::ispunct(static_cast<unsigned char>(token.back())) != 0) {
    token.remove_suffix(1);
  }
  const std::size_t dot = token.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(token.substr(dot + 1));
  std::ranges::transform(extension, extension.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return std::ranges::find(kModelExtensions, extension) != kModelExtensions.end();
}

// The quote that the token opens before its path begins and does not close itself.
std::optional<char> open_quote(std::string_view token) {
  const std::size_t path = token.find_first_of("/\\");
  const std::size_t quote = token.find_first_of("\"'`");
  if (quote == std::string_view::npos || quote > path) return std::nullopt;
  if (token.find(token[quote], quote + 1) != std::string_view::npos) return std::nullopt;
  return token[quote];
}

}  // namespace

std::string carried_text(std::string_view raw, std::size_t limit) {
  std::string line = printable_line(raw, kLongestLine);
  const std::size_t first_letter = line.find_first_not_of(' ');
  if (first_letter == std::string::npos) return {};
  line = line.substr(first_letter, line.find_last_not_of(' ') + 1 - first_letter);

  const std::vector<Token> tokens = tokens_of(line);
  const auto text_of = [&line](const Token& token) {
    return std::string_view(line).substr(token.begin, token.end - token.begin);
  };
  std::optional<std::size_t> first;
  std::size_t last = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = text_of(tokens[i]);
    if (path_shaped(token)) {
      if (!first) first = i;
      last = i;
    } else if (first && ends_in_model_extension(token)) {
      last = i;
    }
  }
  if (first) {
    const std::optional<char> quote = open_quote(text_of(tokens[*first]));
    if (quote) {
      bool closed = false;
      for (std::size_t i = *first + 1; i <= last && !closed; ++i) {
        closed = text_of(tokens[i]).find(*quote) != std::string_view::npos;
      }
      for (std::size_t i = last + 1; i < tokens.size() && !closed; ++i) {
        if (text_of(tokens[i]).find(*quote) == std::string_view::npos) continue;
        closed = true;
        last = i;
      }
    }
    line = line.substr(0, tokens[*first].begin) + "<path>" + line.substr(tokens[last].end);
  }
  line.resize(utf8_prefix(line, limit));
  return line;
}

}  // namespace berth::core
