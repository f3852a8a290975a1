#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "common/text.h"
#include "worker/grammar/gbnf_model.h"
#include "worker/grammar/gbnf_reader.h"

namespace berth::worker {
namespace {

using Kind = GbnfElement::Kind;

constexpr std::size_t kTokenBytes = 256;  // of <text>
constexpr std::uint64_t kLastToken = 0x7FFFFFFF;

class Parser : private GbnfReader {
 public:
  explicit Parser(std::string_view text) : GbnfReader(text) {}

  Result<GbnfModel> run();

 private:
  // What a repetition would be applied to.
  struct Last {
    std::size_t begin = 0;    // of its elements in the rule
    std::uint64_t rules = 1;  // that libllama made for it
    bool exists = false;
  };

  Status rule();
  Status alternatives(std::uint32_t index, int depth);
  Status sequence(std::uint32_t index, int depth);
  Result<bool> item(std::uint32_t index, int depth, Last& last);  // false: none begins here
  Status literal(std::uint32_t index, Last& last);
  Status character_class(std::uint32_t index, Last& last);
  Status token(std::uint32_t index, Last& last);
  Status group(std::uint32_t index, int depth, Last& last);
  Status braces(std::uint32_t index, int depth, Last& last);
  Status repeat(std::uint32_t index, Last& last, std::uint64_t least,
                std::optional<std::uint64_t> most);
  Status push(std::uint32_t index, GbnfElement element);
  Status push_class(std::uint32_t index, const CodePointSet& set, Last& last);
  std::uint32_t reference(std::string_view name);
  std::uint32_t made_rule(std::uint32_t owner);
  [[nodiscard]] tl::unexpected<Error> empty_class() const {
    return error("a character class is empty; nothing can match it");
  }

  std::size_t elements_ = 0;
  GbnfModel model_;
  std::unordered_map<std::string, std::uint32_t> indices_;
};

Result<GbnfModel> Parser::run() {
  space(true);
  while (!done()) {
    if (auto parsed = rule(); !parsed) return fail(parsed.error());
  }
  return std::move(model_);
}

std::uint32_t Parser::reference(std::string_view name) {
  const auto next = static_cast<std::uint32_t>(model_.rules.size());
  const auto [entry, is_new] = indices_.emplace(std::string(name), next);
  if (is_new) {
    model_.rules.push_back(GbnfRule{{}, next, line(), false, false});
    model_.names.emplace_back(name);
  }
  return entry->second;
}

std::uint32_t Parser::made_rule(std::uint32_t owner) {
  const auto index = static_cast<std::uint32_t>(model_.rules.size());
  model_.rules.push_back(GbnfRule{{}, model_.rules[owner].owner, line(), true, false});
  model_.names.emplace_back();
  return index;
}

Status Parser::push(std::uint32_t index, GbnfElement element) {
  elements_ += element.kind == Kind::kClass
                   ? std::max<std::size_t>(1, model_.classes[element.value].size())
                   : 1;
  if (elements_ > GbnfBounds::kElements) {
    return error("the grammar has more than " + std::to_string(GbnfBounds::kElements) +
                 " elements when its repetitions are written out; use fewer or smaller ones");
  }
  if (model_.rules.size() > GbnfBounds::kRules) {
    return error(
        "the grammar has more than " + std::to_string(GbnfBounds::kRules) +
        " rules when its groups and repetitions are written out; use fewer or smaller ones");
  }
  model_.rules[index].elements.push_back(element);
  return {};
}

Status Parser::rule() {
  const auto at = line();
  const auto rule_name = name();
  if (!rule_name) return fail(rule_name.error());
  if (rule_name->empty()) return expected("the name of a rule (letters, digits and `-`)");
  space(false);
  if (rest(3) != "::=") return expected("`::=`");
  skip(3);
  const auto index = reference(*rule_name);
  GbnfRule& entry = model_.rules[index];
  if (entry.defined) {
    return gbnf_error(at, "rule " + gbnf_quoted(*rule_name) + " is already defined in line " +
                              std::to_string(entry.line) + "; join them with `|`");
  }
  entry.defined = true;
  entry.line = at;
  space(true);
  if (auto parsed = alternatives(index, 0); !parsed) return parsed;
  if (!done() && peek() != '\n' && peek() != '\r') {
    return expected("an item, `|` or the end of the line");
  }
  space(true);
  return {};
}

Status Parser::alternatives(std::uint32_t index, int depth) {
  if (auto parsed = sequence(index, depth); !parsed) return parsed;
  while (peek() == '|') {
    skip();
    space(true);
    if (auto pushed = push(index, {Kind::kAlternative, 0}); !pushed) return pushed;
    if (auto parsed = sequence(index, depth); !parsed) return parsed;
  }
  return {};
}

Status Parser::sequence(std::uint32_t index, int depth) {
  Last last;
  last.begin = model_.rules[index].elements.size();
  while (!done()) {
    const auto more = item(index, depth, last);
    if (!more) return fail(more.error());
    if (!*more) return {};
    space(depth > 0);
  }
  return {};
}

Result<bool> Parser::item(std::uint32_t index, int depth, Last& last) {
  const char c = peek();
  Status parsed;
  if (c == '"') {
    parsed = literal(index, last);
  } else if (c == '[') {
    parsed = character_class(index, last);
  } else if (c == '<' || c == '!') {
    parsed = token(index, last);
  } else if (starts_name()) {
    const auto target = name();
    if (!target) return fail(target.error());
    last = {model_.rules[index].elements.size(), 1, true};
    parsed = push(index, {Kind::kReference, reference(*target)});
  } else if (c == '(') {
    parsed = group(index, depth, last);
  } else if (c == '.') {
    skip();
    CodePointSet any;
    any.add(0, kLastCodePoint);
    parsed = push_class(index, any, last);
  } else if (c == '*' || c == '+' || c == '?') {
    skip();
    parsed = repeat(index, last, c == '+' ? 1 : 0,
                    c == '?' ? std::optional<std::uint64_t>(1) : std::nullopt);
  } else if (c == '{') {
    parsed = braces(index, depth, last);
  } else {
    return false;
  }
  if (!parsed) return fail(parsed.error());
  return true;
}

Status Parser::literal(std::uint32_t index, Last& last) {
  skip();
  const auto begin = model_.rules[index].elements.size();
  while (peek() != '"') {
    if (done() || peek() == '\n')
      return expected("`\"` at the end of a literal (a line break within it is \\n)");
    const auto one = character();
    if (!one) return fail(one.error());
    if (auto pushed = push(index, {Kind::kCharacter, *one}); !pushed) return pushed;
  }
  skip();
  last = {begin, 1, model_.rules[index].elements.size() > begin};
  return {};
}

Status Parser::character_class(std::uint32_t index, Last& last) {
  skip();
  const bool negated = peek() == '^';
  if (negated) skip();
  CodePointSet set;
  bool empty = true;
  while (peek() != ']') {
    if (done() || peek() == '\n') return expected("`]` at the end of a character class");
    const auto first = character();
    if (!first) return fail(first.error());
    auto last_one = *first;
    if (peek() == '-' && peek(1) != ']') {
      skip();
      if (done()) return expected("the end of a range");
      const auto second = character();
      if (!second) return fail(second.error());
      if (*second < *first)
        return error("a character class has a range whose end is before its begin");
      last_one = *second;
    }
    set.add(*first, last_one);
    empty = false;
  }
  if (empty) return empty_class();
  skip();
  return push_class(index, negated ? set.complement() : set, last);
}

Status Parser::push_class(std::uint32_t index, const CodePointSet& set, Last& last) {
  auto ranges = set.ranges();
  if (ranges.empty()) return empty_class();
  last = {model_.rules[index].elements.size(), 1, true};
  model_.classes.push_back(std::move(ranges));
  return push(index, {Kind::kClass, static_cast<std::uint32_t>(model_.classes.size() - 1)});
}

// <[42]> or <text>, after ! for any other token. Which tokens exist is known to the model only.
Status Parser::token(std::uint32_t index, Last& last) {
  GbnfToken named{{}, 0, peek() == '!', line()};
  if (named.any_other) skip();
  if (peek() != '<') return expected("`<`");
  skip();
  if (peek() == '[') {
    skip();
    const auto id = number();
    if (!id) return fail(id.error());
    if (*id > kLastToken) return error("a token number is above " + std::to_string(kLastToken));
    if (rest(2) != "]>") return expected("`]>`");
    skip(2);
    named.id = static_cast<std::uint32_t>(*id);
  } else {
    const auto begin = rest(kTokenBytes);
    const auto end = begin.find_first_of(">\n");
    if (end == std::string_view::npos || begin[end] != '>') {
      return expected("`>` at the end of a token, in the same line and within " +
                      std::to_string(kTokenBytes) + " bytes,");
    }
    skip(end + 1);
    named.text = "<" + std::string(begin.substr(0, end + 1));
  }
  last = {model_.rules[index].elements.size(), 1, true};
  model_.tokens.push_back(std::move(named));
  return push(index, {Kind::kToken, static_cast<std::uint32_t>(model_.tokens.size() - 1)});
}

Status Parser::group(std::uint32_t index, int depth, Last& last) {
  if (depth >= GbnfBounds::kGroups) {
    return error("parentheses are nested deeper than " + std::to_string(GbnfBounds::kGroups) +
                 "; give the inner ones a rule");
  }
  const auto opened = line();
  skip();
  space(true);
  const auto before = model_.rules.size();
  const auto sub = made_rule(index);
  if (auto parsed = alternatives(sub, depth + 1); !parsed) return parsed;
  if (peek() != ')') return expected("`)` for the `(` of line " + std::to_string(opened));
  skip();
  last = {model_.rules[index].elements.size(), model_.rules.size() - before, true};
  return push(index, {Kind::kReference, sub});
}

Status Parser::braces(std::uint32_t index, int depth, Last& last) {
  skip();
  space(depth > 0);
  const auto least = number();
  if (!least) return fail(least.error());
  std::optional<std::uint64_t> most = *least;
  space(depth > 0);
  if (peek() == ',') {
    skip();
    space(depth > 0);
    most.reset();
    if (starts_number()) {
      const auto last_count = number();
      if (!last_count) return fail(last_count.error());
      most = *last_count;
      space(depth > 0);
    }
  }
  if (peek() != '}') return expected("`}`");
  skip();
  return repeat(index, last, *least, most);
}

// S{m,n} is S m times and a chain of n - m rules that may end; S* is one rule that leads to itself.
Status Parser::repeat(std::uint32_t index, Last& last, std::uint64_t least,
                      std::optional<std::uint64_t> most) {
  if (!last.exists) return error("there is nothing before `*`, `+`, `?` or `{` that could repeat");
  if (most && *most < least) {
    return error("repetition {" + std::to_string(least) + "," + std::to_string(*most) +
                 "} has a maximum below its minimum");
  }
  const auto count = std::max<std::uint64_t>({1, least, most.value_or(0)});
  if (count > GbnfBounds::kRepetitions || count * last.rules > GbnfBounds::kRepetitions) {
    return error("a repetition of " + std::to_string(count) + " times " +
                 std::to_string(last.rules) + " rules is above the limit of " +
                 std::to_string(GbnfBounds::kRepetitions) +
                 "; use a smaller count, or give the repeated group a rule of its own");
  }
  last.rules *= count;
  const auto& elements = model_.rules[index].elements;
  const std::vector<GbnfElement> body(elements.begin() + static_cast<std::ptrdiff_t>(last.begin),
                                      elements.end());
  if (least == 0) model_.rules[index].elements.resize(last.begin);
  for (std::uint64_t i = 1; i < least; ++i) {
    for (const auto& one : body) {
      if (auto pushed = push(index, one); !pushed) return pushed;
    }
  }
  const std::uint64_t chain = most ? *most - least : 1;
  std::uint32_t next = 0;
  for (std::uint64_t i = 0; i < chain; ++i) {
    const auto made = made_rule(index);
    for (const auto& one : body) {
      if (auto pushed = push(made, one); !pushed) return pushed;
    }
    if (i > 0 || !most) {
      if (auto pushed = push(made, {Kind::kReference, most ? next : made}); !pushed) return pushed;
    }
    if (auto pushed = push(made, {Kind::kAlternative, 0}); !pushed) return pushed;
    model_.rules[made].repeats = !most;
    next = made;
  }
  if (chain == 0) {
    last.exists = least > 0;
    return {};
  }
  return push(index, {Kind::kReference, next});
}

}  // namespace

std::string gbnf_quoted(std::string_view text) {
  return "`" + printable_line(text, 60) + "`";
}

tl::unexpected<Error> gbnf_error(std::size_t line, const std::string& what) {
  return fail(Reason::kInvalidArgument,
              "The grammar's line " + std::to_string(line) + ": " + what + ".");
}

Result<GbnfModel> parse_gbnf(std::string_view grammar, std::size_t max_bytes) {
  if (grammar.size() > max_bytes) {
    return fail(Reason::kInvalidArgument, "The grammar has " + std::to_string(grammar.size()) +
                                              " bytes; at most " + std::to_string(max_bytes) +
                                              " are allowed.");
  }
  const auto line_of = [grammar](std::size_t byte) {
    return 1 + static_cast<std::size_t>(std::count(
                   grammar.begin(), grammar.begin() + static_cast<std::ptrdiff_t>(byte), '\n'));
  };
  if (const auto byte = first_invalid_utf8(grammar)) {
    return gbnf_error(line_of(*byte),
                      "byte " + std::to_string(*byte) + " is not valid UTF-8; send UTF-8");
  }
  if (const auto byte = grammar.find('\0'); byte != std::string_view::npos) {
    return gbnf_error(line_of(byte), "a NUL character; write it as \\x00");
  }
  return Parser(grammar).run();
}

}  // namespace berth::worker
