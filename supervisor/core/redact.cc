#include "supervisor/core/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"
#include "supervisor/core/log/ascii.h"
#include "supervisor/core/log/quotes.h"

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

// Without the punctuation at its end, also the typographic one.
std::string_view without_punctuation(std::string_view token) {
  constexpr std::array<std::string_view, 6> kTypographic = {"\u2018", "\u2019", "\u201C",
                                                            "\u201D", "\u00BB", "\u2026"};
  while (!token.empty()) {
    std::size_t length = 0;
    if (std::ispunct(static_cast<unsigned char>(token.back())) != 0) length = 1;
    for (const std::string_view mark : kTypographic) {
      if (token.ends_with(mark)) length = mark.size();
    }
    if (length == 0) break;
    token.remove_suffix(length);
  }
  return token;
}

bool ends_in_model_extension(std::string_view token) {
  token = without_punctuation(token);
  const std::size_t dot = token.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view extension = token.substr(dot + 1);
  return std::ranges::any_of(kModelExtensions, [extension](std::string_view known) {
    return equal_ignoring_case(extension, known);
  });
}

// What closes the quotation that the token opens before its path begins and does not close itself.
std::optional<std::string_view> open_quote(std::string_view token) {
  const auto quote = first_opening_quote(token, token.find_first_of("/\\"));
  if (!quote || closes_quote(token.substr(quote->end), quote->close)) return std::nullopt;
  return quote->close;
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
    if (const auto close = open_quote(text_of(tokens[*first]))) {
      const auto closing =
          std::find_if(tokens.begin() + static_cast<std::ptrdiff_t>(*first) + 1, tokens.end(),
                       [&](const Token& token) { return closes_quote(text_of(token), *close); });
      if (closing != tokens.end()) {
        last = std::max(last, static_cast<std::size_t>(closing - tokens.begin()));
      }
    }
    line = line.substr(0, tokens[*first].begin) + "<path>" + line.substr(tokens[last].end);
  }
  line.resize(utf8_prefix(line, limit));
  return line;
}

}  // namespace berth::core
