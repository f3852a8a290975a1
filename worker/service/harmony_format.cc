#include "worker/service/harmony_format.h"

#include <cstddef>

#include "worker/grammar/code_points.h"

namespace berth::worker {
namespace {

constexpr std::string_view kEnd = "<|end|>";

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

// The end of the literal, class, token or comment that begins at `at`; `at` where none does.
std::size_t end_of_quoted(std::string_view grammar, std::size_t at) {
  char closing = 0;
  switch (grammar[at]) {
    case '"':
      closing = '"';
      break;
    case '[':
      closing = ']';
      break;
    case '<':
      closing = '>';
      break;
    case '#':
      closing = '\n';
      break;
    default:
      return at;
  }
  const bool escapes = closing == '"' || closing == ']';
  for (++at; at < grammar.size() && grammar[at] != closing; ++at) {
    if (escapes && grammar[at] == '\\') ++at;
  }
  return at + 1;
}

// The grammar with another name for its rule `root`.
std::string rename_root(std::string_view grammar, std::string_view name) {
  std::string out;
  std::size_t at = 0;
  while (at < grammar.size()) {
    auto end = end_of_quoted(grammar, at);
    if (end == at) {
      while (end < grammar.size() && is_name(grammar[end])) ++end;
    }
    if (end == at) ++end;
    const auto part = grammar.substr(at, end - at);
    out.append(part == "root" ? name : part);
    at = end;
  }
  return out;
}

// Rules `prefix`0 to `prefix`6 for a text up to its first <|end|>, which belongs to it, then
// `behind`. Rule n is for when the text so far ends with the first n characters of <|end|>.
std::string up_to_end(const std::string& prefix, const std::string& behind) {
  const auto name = [&](std::size_t matched) { return prefix + std::to_string(matched); };
  std::string rules;
  for (std::size_t matched = 0; matched < kEnd.size(); ++matched) {
    const auto next = kEnd.substr(matched, 1);
    const bool last = matched + 1 == kEnd.size();
    rules +=
        name(matched) + " ::= " + gbnf_literal(next) + " " + (last ? behind : name(matched + 1));
    if (matched == 0) {
      rules += " | [^<] " + name(0) + "\n";
    } else {  // only its first character begins it anew
      rules += " | \"<\" " + name(1) + " | [^<" + std::string(next) + "] " + name(0) + "\n";
    }
  }
  return rules;
}

}  // namespace

std::string harmony_format(std::string_view grammar, bool in_reasoning) {
  std::string prefix = "harmony-";
  while (grammar.find(prefix) != std::string_view::npos) prefix += "x-";
  const auto format = prefix + "format";
  const auto final = prefix + "final";
  const auto text = prefix + "text";
  std::string begin = text + "0";
  if (!in_reasoning) {
    begin =
        R"("<|start|>assistant"? ("<|channel|>analysis<|message|>" )" + begin + " | " + final + ")";
  }
  return rename_root(grammar, format) + "\nroot ::= " + begin + "\n" + final +
         R"( ::= "<|channel|>final" (" "? "<|constrain|>json")? "<|message|>" )" + format + "\n" +
         up_to_end(text, R"("<|start|>assistant" )" + final);
}

}  // namespace berth::worker
