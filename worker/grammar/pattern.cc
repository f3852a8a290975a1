#include "worker/grammar/pattern.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "common/text.h"
#include "worker/grammar/code_points.h"

namespace berth::worker {
namespace {

constexpr std::size_t kPatternBytes = 4'096;
constexpr int kGroups = 32;

CodePointSet digits() {
  CodePointSet set;
  set.add('0', '9');
  return set;
}

CodePointSet word() {
  auto set = digits();
  set.add('A', 'Z');
  set.add('a', 'z');
  set.add('_', '_');
  return set;
}

CodePointSet space() {
  CodePointSet set;
  set.add('\t', '\r');
  set.add(' ', ' ');
  return set;
}

CodePointSet single(std::uint32_t code_point) {
  CodePointSet set;
  set.add(code_point, code_point);
  return set;
}

// GBNF of a part of the expression.
struct Piece {
  std::string text;
  bool can_be_empty = false;
  bool is_symbol = false;  // one name, class or literal: may be followed by * as it is
};

// What an escape means: a set, or one character that may begin a range.
struct Escape {
  CodePointSet set;
  std::optional<std::uint32_t> character;
};

class Converter {
 public:
  Converter(std::string_view pattern, const std::string& where, RuleBook& book)
      : whole_(pattern), rest_(pattern), where_(where), book_(book) {}

  Result<std::string> run();

 private:
  Result<Piece> alternatives(int depth);
  Result<Piece> top_alternative();
  Result<Piece> sequence(int depth);
  Result<Piece> atom(int depth);
  Result<Piece> group(int depth);
  Result<Piece> quantified(Piece piece);
  Result<std::optional<std::pair<std::uint64_t, std::optional<std::uint64_t>>>> quantifier();
  Result<std::uint64_t> count();
  Result<Piece> character(const CodePointSet& set);
  Result<CodePointSet> character_class();
  Result<Escape> class_item();
  Result<Escape> escape();
  Result<std::uint32_t> hex(std::size_t digits);

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] tl::unexpected<Error> error(const std::string& what) const {
    return fail(Reason::kInvalidArgument, where_ + ": `pattern`, byte " +
                                              std::to_string(whole_.size() - rest_.size()) + ": " +
                                              what + ".");
  }

  std::string_view whole_;
  std::string_view rest_;
  const std::string& where_;
  RuleBook& book_;
};

Result<std::string> Converter::run() {
  std::string text;
  bool first = true;
  do {
    const auto one = top_alternative();
    if (!one) return fail(one.error());
    text += (first ? "" : " | ") + one->text;
    first = false;
  } while (take('|'));
  if (!rest_.empty()) return error("`)` without `(`");
  return "\"\\\"\" (" + text + ") \"\\\"\"";
}

Result<Piece> Converter::top_alternative() {
  const bool from_start = take('^');
  auto inner = sequence(0);
  if (!inner) return inner;
  const bool to_end = take('$');
  if (to_end && !rest_.empty() && rest_.front() != '|') {
    return error("`$` is supported only at the end of an alternative that is not in a group");
  }
  const auto anything = from_start && to_end ? std::string() : book_.json("json-char") + "*";
  if (!from_start) inner->text = anything + " " + inner->text;
  if (!to_end) inner->text += " " + anything;
  return inner;
}

Result<Piece> Converter::alternatives(int depth) {
  Piece all;
  bool first = true;
  do {
    auto one = sequence(depth);
    if (!one) return one;
    all.text += (first ? "" : " | ") + one->text;
    all.can_be_empty = all.can_be_empty || one->can_be_empty;
    first = false;
  } while (take('|'));
  return all;
}

Result<Piece> Converter::sequence(int depth) {
  Piece all{"", true, false};
  while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
    if (rest_.front() == '$' && depth == 0) break;
    auto one = atom(depth);
    if (!one) return one;
    one = quantified(std::move(*one));
    if (!one) return one;
    all.text += (all.text.empty() ? "" : " ") + one->text;
    all.can_be_empty = all.can_be_empty && one->can_be_empty;
  }
  if (all.text.empty()) all.text = "\"\"";
  return all;
}

Result<Piece> Converter::atom(int depth) {
  switch (rest_.front()) {
    case '(':
      return group(depth);
    case '[': {
      const auto set = character_class();
      if (!set) return fail(set.error());
      return character(*set);
    }
    case '.': {
      rest_.remove_prefix(1);
      CodePointSet line_ends;
      line_ends.add('\n', '\n');
      line_ends.add('\r', '\r');
      line_ends.add(0x2028, 0x2029);
      return character(line_ends.complement());
    }
    case '\\': {
      const auto escaped = escape();
      if (!escaped) return fail(escaped.error());
      return character(escaped->set);
    }
    case '^':
    case '$':
      return error(
          "`^` and `$` are supported only at the ends of an alternative that is not in a "
          "group; write them around the group");
    case '*':
    case '+':
    case '?':
    case '{':
      return error("a quantifier without anything before it; escape it with `\\`");
    default:
      return character(single(take_code_point(rest_)));
  }
}

Result<Piece> Converter::group(int depth) {
  if (depth >= kGroups) return error("groups are nested deeper than " + std::to_string(kGroups));
  rest_.remove_prefix(1);
  if (take('?') && !take(':')) {
    return error("look-around and named groups are not supported; use plain groups");
  }
  auto inner = alternatives(depth + 1);
  if (!inner) return inner;
  if (!take(')')) return error("`(` without `)`");
  inner->text = "(" + inner->text + ")";
  return inner;
}

Result<Piece> Converter::quantified(Piece piece) {
  const auto counts = quantifier();
  if (!counts) return fail(counts.error());
  if (!*counts) return piece;
  const auto [least, most] = **counts;
  if (most == 0U) return Piece{"\"\"", true, false};
  if (piece.can_be_empty && most != 1U) {
    return error("something that may be empty is repeated; let it match at least one character");
  }
  // Behind a name, libllama does not count the rules of a group for its limit of repetitions.
  if (!piece.is_symbol) piece.text = book_.share("pattern", piece.text);
  return Piece{book_.repeat(piece.text, least, most), piece.can_be_empty || least == 0, false};
}

Result<std::optional<std::pair<std::uint64_t, std::optional<std::uint64_t>>>>
Converter::quantifier() {
  std::pair<std::uint64_t, std::optional<std::uint64_t>> counts;
  if (take('*')) {
    counts = {0, std::nullopt};
  } else if (take('+')) {
    counts = {1, std::nullopt};
  } else if (take('?')) {
    counts = {0, 1};
  } else if (take('{')) {
    const auto least = count();
    if (!least) return fail(least.error());
    counts = {*least, *least};
    if (take(',')) {
      counts.second.reset();
      if (!rest_.starts_with('}')) {
        const auto most = count();
        if (!most) return fail(most.error());
        counts.second = *most;
      }
    }
    if (!take('}')) return error("expected `}` at the end of a quantifier");
    if (counts.second && *counts.second < counts.first) {
      return error("a quantifier has a maximum below its minimum");
    }
  } else {
    return std::nullopt;
  }
  take('?');
  if (!rest_.empty() && (rest_.front() == '*' || rest_.front() == '+' || rest_.front() == '?' ||
                         rest_.front() == '{')) {
    return error("a quantifier after a quantifier");
  }
  return counts;
}

Result<std::uint64_t> Converter::count() {
  if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') {
    return error("expected a number in `{m,n}`; escape a literal `{` with `\\`");
  }
  std::uint64_t value = 0;
  while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
    value = value * 10 + static_cast<std::uint64_t>(rest_.front() - '0');
    rest_.remove_prefix(1);
    if (value > RuleBook::kLargestCount) {
      return error("a count is above " + std::to_string(RuleBook::kLargestCount));
    }
  }
  return value;
}

Result<Piece> Converter::character(const CodePointSet& set) {
  auto text = gbnf_json_character(set);
  if (text.empty()) return error("a class matches no character of a JSON string");
  const bool symbol = text.front() != '(';
  return Piece{std::move(text), false, symbol};
}

Result<CodePointSet> Converter::character_class() {
  rest_.remove_prefix(1);
  const bool negated = take('^');
  CodePointSet set;
  while (!take(']')) {
    const auto first = class_item();
    if (!first) return fail(first.error());
    const bool range = rest_.size() > 1 && rest_.front() == '-' && rest_[1] != ']';
    if (!range || !first->character) {
      set.add(first->set);
      continue;
    }
    rest_.remove_prefix(1);
    const auto last = class_item();
    if (!last) return fail(last.error());
    if (!last->character || *last->character < *first->character) {
      return error("a class has a range whose end is not a character after its begin");
    }
    set.add(*first->character, *last->character);
  }
  if (set.ranges().empty()) return error("an empty class");
  return negated ? set.complement() : set;
}

Result<Escape> Converter::class_item() {
  if (rest_.empty()) return error("`[` without `]`");
  if (rest_.front() == '\\') return escape();
  const auto one = take_code_point(rest_);
  return Escape{single(one), one};
}

Result<Escape> Converter::escape() {
  rest_.remove_prefix(1);
  if (rest_.empty()) return error("`\\` at the end");
  const auto kind = take_code_point(rest_);
  const auto character = [](std::uint32_t one) { return Escape{single(one), one}; };
  switch (kind) {
    case 'd':
      return Escape{digits(), std::nullopt};
    case 'D':
      return Escape{digits().complement(), std::nullopt};
    case 'w':
      return Escape{word(), std::nullopt};
    case 'W':
      return Escape{word().complement(), std::nullopt};
    case 's':
      return Escape{space(), std::nullopt};
    case 'S':
      return Escape{space().complement(), std::nullopt};
    case 't':
      return character('\t');
    case 'n':
      return character('\n');
    case 'r':
      return character('\r');
    case 'f':
      return character('\f');
    case 'v':
      return character('\v');
    case '0':
      return character(0);
    case 'x':
    case 'u': {
      const auto value = hex(kind == 'x' ? 2 : 4);
      if (!value) return fail(value.error());
      return character(*value);
    }
    default:
      break;
  }
  const bool name = (kind >= '0' && kind <= '9') || (kind >= 'A' && kind <= 'Z') ||
                    (kind >= 'a' && kind <= 'z') || kind > 0x7F;
  if (!name) return character(kind);
  std::string shown = "`\\";
  append_utf8(shown, kind);
  return error(printable_line(shown, 16) +
               "` is not supported (no \\b, back-references or Unicode properties)");
}

Result<std::uint32_t> Converter::hex(std::size_t digits_wanted) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < digits_wanted; ++i) {
    constexpr std::string_view kHex = "0123456789abcdef";
    const char c = rest_.empty() ? '?' : rest_.front();
    const auto digit = kHex.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
    if (digit == std::string_view::npos) {
      return error("expected " + std::to_string(digits_wanted) + " hexadecimal digits");
    }
    value = value * 16 + static_cast<std::uint32_t>(digit);
    rest_.remove_prefix(1);
  }
  return value;
}

}  // namespace

Result<std::string> pattern_to_gbnf(std::string_view pattern, const std::string& where,
                                    RuleBook& book) {
  if (pattern.size() > kPatternBytes) {
    return fail(Reason::kInvalidArgument, where + ": `pattern` has " +
                                              std::to_string(pattern.size()) + " bytes; at most " +
                                              std::to_string(kPatternBytes) + " are allowed.");
  }
  return Converter(pattern, where, book).run();
}

}  // namespace berth::worker
