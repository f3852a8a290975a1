#include "supervisor/core/log/quotes.h"

#include <array>

#include "supervisor/core/log/ascii.h"

namespace berth::core {
namespace {

struct Pair {
  std::string_view open;
  std::string_view close;
};
constexpr std::array<Pair, 7> kPairs = {{
    {"\"", "\""},
    {"'", "'"},
    {"`", "`"},
    {"\u201C", "\u201D"},
    {"\u2018", "\u2019"},
    {"\u00AB", "\u00BB"},
    {"\u201E", "\u201C"},
}};

// A straight mark looks the same at both ends: it opens at the begin, behind a blank, behind
// punctuation that opens or separates, and behind the letters of a Python literal.
bool may_open_behind(std::string_view before) {
  if (before.empty()) return true;
  const char last = before.back();
  constexpr std::string_view kOpening = " \t([{<=:,;|+-/\\\"'`";
  if (kOpening.find(last) != std::string_view::npos) return true;
  constexpr std::string_view kLiteral = "rbfu";
  std::size_t letters = 0;
  while (letters < before.size() && letters < 2 &&
         kLiteral.find(to_lower(before[before.size() - 1 - letters])) != std::string_view::npos) {
    ++letters;
  }
  if (letters == 0) return false;
  return letters == before.size() || !is_word_character(before[before.size() - 1 - letters]);
}

bool opens(const Pair& pair, std::string_view before) {
  return pair.open.size() > 1 || may_open_behind(before);
}

}  // namespace

bool ends_in_opening_quote(std::string_view text) {
  for (const Pair& pair : kPairs) {
    if (!text.ends_with(pair.open)) continue;
    return opens(pair, text.substr(0, text.size() - pair.open.size()));
  }
  return false;
}

std::optional<OpenQuote> first_opening_quote(std::string_view text, std::size_t limit) {
  for (std::size_t at = 0; at < text.size() && at < limit; ++at) {
    for (const Pair& pair : kPairs) {
      if (text.substr(at).starts_with(pair.open) && opens(pair, text.substr(0, at))) {
        return OpenQuote{pair.close, at + pair.open.size()};
      }
    }
  }
  return std::nullopt;
}

bool closes_quote(std::string_view text, std::string_view close) {
  for (std::size_t at = text.find(close); at != std::string_view::npos;
       at = text.find(close, at + close.size())) {
    const std::size_t end = at + close.size();
    if (end == text.size() || !is_word_character(text[end])) return true;
  }
  return false;
}

}  // namespace berth::core
