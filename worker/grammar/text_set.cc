#include "worker/grammar/text_set.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <cstdint>
#include <utility>

#include "common/text.h"
#include "worker/grammar/code_points.h"

namespace berth::worker {
namespace {

constexpr std::size_t kListed = 16;  // texts that are listed as they are

struct Node {
  std::vector<std::pair<std::uint32_t, std::size_t>> children;
  bool ends = false;  // a text ends here
};

// Children come after their parents.
std::vector<Node> make_tree(const std::vector<std::string>& sorted) {
  std::vector<Node> nodes(1);
  for (const auto& text : sorted) {
    std::size_t at = 0;
    for (std::string_view rest = text; !rest.empty();) {
      const auto code_point = take_code_point(rest);
      auto& children = nodes[at].children;
      if (!children.empty() && children.back().first == code_point) {
        at = children.back().second;
        continue;
      }
      const auto next = nodes.size();
      children.emplace_back(code_point, next);
      nodes.emplace_back();
      at = next;
    }
    nodes[at].ends = true;
  }
  return nodes;
}

// Characters, last first, and then what a rule matches.
struct Way {
  std::vector<std::uint32_t> reversed;
  std::string rule;
};

std::string text_of(const Way& way) {
  std::string literal;
  for (auto at = way.reversed.rbegin(); at != way.reversed.rend(); ++at) append_utf8(literal, *at);
  if (way.rule.empty()) return gbnf_literal(literal);
  if (literal.empty()) return way.rule;
  return gbnf_literal(literal) + " " + way.rule;
}

std::string text_of(const std::vector<Way>& ways) {
  std::string text;
  for (const auto& way : ways) text += (text.empty() ? "" : " | ") + text_of(way);
  return text;
}

// For every node: how many characters of an escape are still to come; kEscape where its kind is.
constexpr int kEscape = 5;

std::vector<int> escape_characters_pending(const std::vector<Node>& nodes) {
  std::vector<int> pending(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& [code_point, child] : nodes[i].children) {
      if (pending[i] == kEscape) {
        pending[child] = code_point == 'u' ? 4 : 0;
      } else if (pending[i] > 0) {
        pending[child] = pending[i] - 1;
      } else {
        pending[child] = code_point == '\\' ? kEscape : 0;
      }
    }
  }
  return pending;
}

// What may follow a beginning of names, so that no name comes of it.
std::string other_ways(const Node& node, int pending, const std::vector<std::string>& rules,
                       RuleBook& book) {
  std::string body = node.ends || pending > 0 ? "" : "\"\"";
  const auto add = [&body](const std::string& way) { body += (body.empty() ? "" : " | ") + way; };
  CodePointSet used;
  for (const auto& [code_point, child] : node.children) {
    CodePointSet one;
    one.add(code_point, code_point);
    used.add(one);
    add(gbnf_class(one) + " " + rules[child]);
  }
  const auto any = book.json("json-char") + "*";
  CodePointSet escapes;  // the only spelling of what they stand for, other than \u
  for (const char c : std::string_view("\"\\bfnrt")) {
    escapes.add(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
  }
  if (pending == kEscape) {
    const auto rest = escapes.without(used);
    if (!rest.ranges().empty()) add(gbnf_class(rest) + " " + any);
  } else if (pending == 0) {
    if (!used.contains('\\')) add(R"("\\" )" + gbnf_class(escapes) + " " + any);
    used.add(0, 0x1F);
    used.add('"', '"');
    used.add('\\', '\\');
    add(gbnf_class(used.complement()) + " " + any);
  }
  return body;
}

std::string sole(const std::vector<std::string>& texts) {
  std::string text;
  for (const auto& one : texts) text += (text.empty() ? "" : " | ") + gbnf_literal(one);
  return text;
}

}  // namespace

std::string one_of_texts(std::vector<std::string> texts, std::string_view hint, RuleBook& book) {
  if (texts.size() <= kListed) return sole(texts);
  std::sort(texts.begin(), texts.end());
  const auto nodes = make_tree(texts);
  std::vector<std::vector<Way>> ways(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i].ends) ways[i].push_back({});
    for (const auto& [code_point, child] : nodes[i].children) {
      auto& below = ways[child];
      Way way;
      if (below.size() == 1) {
        way = std::move(below.front());
      } else {
        way.rule = book.share(hint, text_of(below));
      }
      way.reversed.push_back(code_point);
      ways[i].push_back(std::move(way));
      below.clear();
    }
  }
  return text_of(ways.front());
}

std::string string_other_than(const std::vector<std::string>& names, RuleBook& book) {
  if (names.empty()) return book.json("json-string");
  std::vector<std::string> escaped;
  for (const auto& name : names) {
    const auto quoted = boost::json::serialize(boost::json::string_view(name.data(), name.size()));
    escaped.push_back(quoted.substr(1, quoted.size() - 2));
  }
  std::sort(escaped.begin(), escaped.end());
  const auto nodes = make_tree(escaped);
  const auto pending = escape_characters_pending(nodes);
  std::vector<std::string> rules(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    rules[i] = book.share("key", other_ways(nodes[i], pending[i], rules, book));
  }
  return R"("\"" )" + rules.front() + R"( "\"")";
}

}  // namespace berth::worker
