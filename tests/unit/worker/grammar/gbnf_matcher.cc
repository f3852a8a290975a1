#include "tests/unit/worker/grammar/gbnf_matcher.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

namespace berth::worker::test {
namespace {

constexpr std::size_t kNoMaximum = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kSteps = 20'000'000;

std::u32string decode(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t value = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      value = (value << 6U) | (static_cast<unsigned char>(text.at(i + k)) & 0x3FU);
    }
    out += value;
    i += length;
  }
  return out;
}

bool is_name(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9') ||
         c == U'-';
}

[[noreturn]] void broken(const std::string& what) {
  throw std::runtime_error("broken grammar: " + what);
}

}  // namespace

GbnfMatcher::GbnfMatcher(std::string_view grammar) : grammar_(decode(grammar)) {
  grammar_ += U'\0';
  skip(true);
  while (grammar_[at_] != U'\0') {
    const auto name = parse_name();
    skip(false);
    if (grammar_.substr(at_, 3) != U"::=") broken("no ::= after " + name);
    at_ += 3;
    skip(true);
    rules_[name] = parse_choice(false);
    if (grammar_[at_] != U'\n' && grammar_[at_] != U'\0') broken("rule " + name + " does not end");
    skip(true);
  }
}

std::size_t GbnfMatcher::add(Node node) {
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

void GbnfMatcher::skip(bool newlines) {
  for (;; ++at_) {
    if (grammar_[at_] == U'#') {
      while (grammar_[at_] != U'\n' && grammar_[at_] != U'\0') ++at_;
    }
    const auto c = grammar_[at_];
    if (c != U' ' && c != U'\t' && !(newlines && c == U'\n')) return;
  }
}

std::string GbnfMatcher::parse_name() {
  std::string name;
  while (is_name(grammar_[at_])) name += static_cast<char>(grammar_[at_++]);
  if (name.empty()) broken("no name");
  return name;
}

std::size_t GbnfMatcher::parse_choice(bool nested) {
  Node choice{Kind::kChoice, {}, {}, false, {}, {}, 0, 0};
  choice.parts.push_back(parse_sequence(nested));
  while (grammar_[at_] == U'|') {
    ++at_;
    skip(true);
    choice.parts.push_back(parse_sequence(nested));
  }
  return add(std::move(choice));
}

std::size_t GbnfMatcher::parse_sequence(bool nested) {
  Node sequence;
  while (grammar_[at_] != U'|' && grammar_[at_] != U')' && grammar_[at_] != U'\n' &&
         grammar_[at_] != U'\0') {
    sequence.parts.push_back(parse_repeat(parse_item(nested)));
    skip(nested);
  }
  return add(std::move(sequence));
}

std::size_t GbnfMatcher::parse_item(bool nested) {
  const auto c = grammar_[at_];
  if (c == U'(') {
    ++at_;
    skip(true);
    const auto inner = parse_choice(true);
    if (grammar_[at_++] != U')') broken("no )");
    skip(nested);
    return inner;
  }
  Node node;
  if (c == U'"') {
    node.kind = Kind::kLiteral;
    for (++at_; grammar_[at_] != U'"';) node.characters.push_back(parse_character());
    ++at_;
  } else if (c == U'[') {
    node.kind = Kind::kClass;
    ++at_;
    if (grammar_[at_] == U'^') {
      node.negated = true;
      ++at_;
    }
    while (grammar_[at_] != U']') {
      const auto first = parse_character();
      auto last = first;
      if (grammar_[at_] == U'-' && grammar_[at_ + 1] != U']') {
        ++at_;
        last = parse_character();
      }
      node.ranges.emplace_back(first, last);
    }
    ++at_;
  } else if (c == U'.') {
    node.kind = Kind::kClass;
    node.negated = true;
    ++at_;
  } else {
    node.kind = Kind::kReference;
    node.name = parse_name();
  }
  return add(std::move(node));
}

std::size_t GbnfMatcher::parse_repeat(std::size_t item) {
  while (true) {
    skip(false);
    const auto c = grammar_[at_];
    Node node{Kind::kRepeat, {}, {}, false, {}, {item}, 0, kNoMaximum};
    if (c == U'+') node.least = 1;
    if (c == U'?') node.most = 1;
    if (c == U'{') {
      ++at_;
      node.least = node.most = parse_number();
      if (grammar_[at_] == U',') {
        ++at_;
        node.most = grammar_[at_] == U'}' ? kNoMaximum : parse_number();
      }
      if (grammar_[at_] != U'}') broken("no }");
    } else if (c != U'*' && c != U'+' && c != U'?') {
      return item;
    }
    ++at_;
    item = add(std::move(node));
  }
}

std::size_t GbnfMatcher::parse_number() {
  std::size_t value = 0;
  if (grammar_[at_] < U'0' || grammar_[at_] > U'9') broken("no number");
  while (grammar_[at_] >= U'0' && grammar_[at_] <= U'9') {
    value = value * 10 + (grammar_[at_++] - U'0');
  }
  return value;
}

std::uint32_t GbnfMatcher::parse_character() {
  const auto c = grammar_[at_++];
  if (c == U'\0') broken("ends within a literal");
  if (c != U'\\') return c;
  const auto kind = grammar_[at_++];
  const int digits = kind == U'x' ? 2 : kind == U'u' ? 4 : kind == U'U' ? 8 : 0;
  if (digits == 0) return kind == U'n' ? U'\n' : kind == U't' ? U'\t' : kind == U'r' ? U'\r' : kind;
  std::string hex;
  for (int i = 0; i < digits; ++i) hex += static_cast<char>(grammar_[at_++]);
  return static_cast<std::uint32_t>(std::stoul(hex, nullptr, 16));
}

bool GbnfMatcher::matches(std::string_view text) {
  text_ = decode(text);
  known_.clear();
  const auto& all = ends(rules_.at("root"), 0);
  return std::find(all.begin(), all.end(), text_.size()) != all.end();
}

const std::vector<std::size_t>& GbnfMatcher::ends(std::size_t node, std::size_t begin) {
  const auto key = (std::uint64_t{node} << 32U) | begin;
  const auto found = known_.find(key);
  if (found != known_.end()) return *found->second;
  if (known_.size() > kSteps) throw std::runtime_error("too many steps");
  auto result = std::make_unique<std::vector<std::size_t>>(compute(nodes_[node], begin));
  return *known_.emplace(key, std::move(result)).first->second;
}

std::vector<std::size_t> GbnfMatcher::compute(const Node& node, std::size_t begin) {
  if (node.kind == Kind::kLiteral) {
    if (begin + node.characters.size() > text_.size()) return {};
    for (std::size_t i = 0; i < node.characters.size(); ++i) {
      if (text_[begin + i] != node.characters[i]) return {};
    }
    return {begin + node.characters.size()};
  }
  if (node.kind == Kind::kClass) {
    if (begin >= text_.size()) return {};
    const auto inside = std::any_of(node.ranges.begin(), node.ranges.end(), [&](const auto& one) {
      return one.first <= text_[begin] && text_[begin] <= one.second;
    });
    return inside != node.negated ? std::vector<std::size_t>{begin + 1}
                                  : std::vector<std::size_t>{};
  }
  if (node.kind == Kind::kReference) return ends(rules_.at(node.name), begin);
  std::set<std::size_t> reached;
  if (node.kind == Kind::kChoice) {
    for (const auto part : node.parts) {
      const auto& some = ends(part, begin);
      reached.insert(some.begin(), some.end());
    }
  } else if (node.kind == Kind::kSequence) {
    reached.insert(begin);
    for (const auto part : node.parts) {
      std::set<std::size_t> next;
      for (const auto at : reached) {
        const auto& some = ends(part, at);
        next.insert(some.begin(), some.end());
      }
      reached = std::move(next);
    }
  } else {
    std::set<std::size_t> current = {begin};
    for (std::size_t count = 0; !current.empty(); ++count) {
      if (count >= node.least) {
        const auto before = reached.size();
        reached.insert(current.begin(), current.end());
        if (reached.size() == before) break;
      }
      if (count == node.most) break;
      std::set<std::size_t> next;
      for (const auto at : current) {
        const auto& some = ends(node.parts.front(), at);
        next.insert(some.begin(), some.end());
      }
      current = std::move(next);
    }
  }
  return {reached.begin(), reached.end()};
}

}  // namespace berth::worker::test
