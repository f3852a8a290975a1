#include "worker/grammar/text_set.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <cstdint>
#include <utility>

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

std::string sole(std::vector<std::string> texts) {
  std::string text;
  for (const auto& one : texts) text += (text.empty() ? "" : " | ") + gbnf_literal(one);
  return text;
}

}  // namespace

std::string one_of_texts(std::vector<std::string> texts, std::string_view hint, RuleBook& book) {
  if (texts.size() <= kListed) return sole(std::move(texts));
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
  bool has_escapes = false;
  for (const auto& name : names) {
    const auto quoted = boost::json::serialize(boost::json::string_view(name.data(), name.size()));
    escaped.push_back(quoted.substr(1, quoted.size() - 2));
    has_escapes = has_escapes || escaped.back().find('\\') != std::string::npos;
  }
  std::sort(escaped.begin(), escaped.end());
  const auto nodes = make_tree(escaped);
  const auto any = book.json("json-char") + "*";
  std::vector<std::string> rules(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    std::string body = nodes[i].ends ? "" : "\"\"";
    const auto add = [&body](const std::string& way) { body += (body.empty() ? "" : " | ") + way; };
    CodePointSet others;
    others.add(0, 0x1F);
    others.add('"', '"');
    others.add('\\', '\\');
    for (const auto& [code_point, child] : nodes[i].children) {
      others.add(code_point, code_point);
      CodePointSet one;
      one.add(code_point, code_point);
      add(gbnf_class(one) + " " + rules[child]);
    }
    add(gbnf_class(others.complement()) + " " + any);
    if (!has_escapes) add(R"("\\" ["\\bfnrt] )" + any);
    rules[i] = book.share("key", body);
  }
  return R"("\"" )" + rules.front() + R"( "\"")";
}

}  // namespace berth::worker
