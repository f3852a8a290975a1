#include "worker/grammar/gbnf_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace berth::worker {
namespace {

using Kind = GbnfElement::Kind;

class Checker {
 public:
  explicit Checker(const GbnfModel& model)
      : model_(model), can_be_empty_(model.rules.size()), begins_with_(model.rules.size()) {}

  Status run() {
    if (auto checked = check_defined(); !checked) return checked;
    find_empty();
    if (auto checked = check_repeated_empty(); !checked) return checked;
    find_beginnings();
    if (auto checked = order_rules(); !checked) return checked;
    return check_paths();
  }

 private:
  [[nodiscard]] Status check_defined() const;
  [[nodiscard]] Status check_repeated_empty() const;
  void find_empty();
  void find_beginnings();
  Status order_rules();
  [[nodiscard]] Status check_paths() const;
  [[nodiscard]] Status check_inner_paths(const std::vector<std::uint64_t>& paths) const;
  [[nodiscard]] tl::unexpected<Error> too_many_paths(std::uint32_t rule) const;

  [[nodiscard]] std::string name_of(std::uint32_t rule) const {
    return gbnf_quoted(model_.names[model_.rules[rule].owner]);
  }
  [[nodiscard]] tl::unexpected<Error> cycle(const std::vector<std::uint32_t>& path,
                                            std::uint32_t back_to) const;

  const GbnfModel& model_;
  std::vector<bool> can_be_empty_;
  std::vector<std::vector<std::uint32_t>> begins_with_;  // rules that may stand first, per path
  std::vector<std::uint32_t> order_;                     // every rule after those it begins with
};

Status Checker::check_defined() const {
  bool has_root = false;
  for (std::size_t i = 0; i < model_.rules.size(); ++i) {
    if (!model_.rules[i].defined) {
      const auto name = gbnf_quoted(model_.names[i]);
      std::string problem = "rule ";
      problem += name;
      problem += " is used but not defined; give ";
      problem += name;
      problem += " a definition with `::=`";
      return gbnf_error(model_.rules[i].line, problem);
    }
    has_root = has_root || model_.names[i] == "root";
  }
  if (!has_root) return gbnf_error(1, "the grammar has no rule `root`, where it would begin");
  return {};
}

// Every alternative counts its elements that cannot be empty; each reference counts down once.
void Checker::find_empty() {
  struct Alternative {
    std::uint32_t rule = 0;
    std::uint32_t remaining = 0;
  };
  std::vector<Alternative> alternatives;
  std::vector<std::vector<std::uint32_t>> uses(model_.rules.size());  // alternatives, per reference
  for (std::uint32_t i = 0; i < model_.rules.size(); ++i) {
    alternatives.push_back({i, 0});
    for (const auto& one : model_.rules[i].elements) {
      if (one.kind == Kind::kAlternative) {
        alternatives.push_back({i, 0});
        continue;
      }
      ++alternatives.back().remaining;
      if (one.kind != Kind::kReference) continue;
      uses[one.value].push_back(static_cast<std::uint32_t>(alternatives.size() - 1));
    }
  }
  std::vector<std::uint32_t> waiting;
  const auto mark = [this, &waiting](std::uint32_t rule) {
    if (can_be_empty_[rule]) return;
    can_be_empty_[rule] = true;
    waiting.push_back(rule);
  };
  for (const auto& one : alternatives) {
    if (one.remaining == 0) mark(one.rule);
  }
  while (!waiting.empty()) {
    const auto rule = waiting.back();
    waiting.pop_back();
    for (const auto use : uses[rule]) {
      if (--alternatives[use].remaining == 0) mark(alternatives[use].rule);
    }
  }
}

// libllama takes (x*)* but not x** nor ws*, where `ws` has an alternative without anything.
Status Checker::check_repeated_empty() const {
  for (const auto& rule : model_.rules) {
    if (!rule.repeats || rule.elements.front().kind != Kind::kReference) continue;
    const auto& body = model_.rules[rule.elements.front().value].elements;
    bool empty = body.empty() || body.front().kind == Kind::kAlternative ||
                 body.back().kind == Kind::kAlternative;
    for (std::size_t i = 1; i < body.size(); ++i) {
      empty =
          empty || (body[i].kind == Kind::kAlternative && body[i - 1].kind == Kind::kAlternative);
    }
    if (!empty) continue;
    return gbnf_error(rule.line, "in rule " + gbnf_quoted(model_.names[rule.owner]) +
                                     ", something that may be empty is repeated without end; let "
                                     "it have at least one character, or drop one repetition");
  }
  return {};
}

void Checker::find_beginnings() {
  for (std::uint32_t i = 0; i < model_.rules.size(); ++i) {
    bool at_begin = true;
    for (const auto& one : model_.rules[i].elements) {
      if (one.kind == Kind::kAlternative) {
        at_begin = true;
      } else if (at_begin) {
        const bool itself = model_.rules[i].repeats && one.value == i;
        if (one.kind == Kind::kReference && !itself) begins_with_[i].push_back(one.value);
        at_begin = one.kind == Kind::kReference && can_be_empty_[one.value];
      }
    }
  }
}

// Depth first, without recursion.
Status Checker::order_rules() {
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  std::vector<State> states(model_.rules.size(), State::kNew);
  std::vector<std::uint32_t> path;
  std::vector<std::size_t> next;  // beside path: which beginning comes next
  for (std::uint32_t start = 0; start < model_.rules.size(); ++start) {
    if (states[start] != State::kNew) continue;
    path.push_back(start);
    next.push_back(0);
    states[start] = State::kOpen;
    while (!path.empty()) {
      const auto rule = path.back();
      if (next.back() == begins_with_[rule].size()) {
        states[rule] = State::kDone;
        order_.push_back(rule);
        path.pop_back();
        next.pop_back();
        continue;
      }
      const auto to = begins_with_[rule][next.back()++];
      if (states[to] == State::kOpen) return cycle(path, to);
      if (states[to] == State::kDone) continue;
      states[to] = State::kOpen;
      path.push_back(to);
      next.push_back(0);
    }
  }
  return {};
}

tl::unexpected<Error> Checker::cycle(const std::vector<std::uint32_t>& path,
                                     std::uint32_t back_to) const {
  constexpr std::size_t kShown = 8;
  const auto begin = std::find(path.begin(), path.end(), back_to);
  std::vector<std::string> names;
  for (auto at = begin; at != path.end(); ++at) {
    auto name = name_of(*at);
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  if (names.size() == 1 || names.back() != names.front()) names.push_back(names.front());
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i >= kShown && i + 1 < names.size()) continue;
    if (i > 0) text += i == kShown || (i + 1 == names.size() && i > kShown) ? " -> … -> " : " -> ";
    text += names[i];
  }
  return gbnf_error(model_.rules[back_to].line, "a rule begins with itself (left recursion): " +
                                                    text + "; let it begin with something else");
}

Status Checker::check_paths() const {
  std::vector<std::uint64_t> paths(model_.rules.size());
  std::vector<std::uint32_t> chain(model_.rules.size());
  std::uint64_t all = 0;
  for (const auto rule : order_) {
    std::uint64_t count = 1;
    for (const auto& one : model_.rules[rule].elements) count += one.kind == Kind::kAlternative;
    std::uint32_t longest = 0;
    for (const auto to : begins_with_[rule]) {
      count += paths[to];
      longest = std::max(longest, chain[to]);
    }
    paths[rule] = count;
    chain[rule] = longest + 1;
    all += count;
    const auto line = model_.rules[rule].line;
    if (count > GbnfBounds::kPaths) return too_many_paths(rule);
    if (chain[rule] > GbnfBounds::kChain) {
      return gbnf_error(line, "rule " + name_of(rule) + " begins with a chain of more than " +
                                  std::to_string(GbnfBounds::kChain) + " rules; shorten it");
    }
    if (all > GbnfBounds::kAllPaths) {
      return gbnf_error(line, "the rules can begin in more than " +
                                  std::to_string(GbnfBounds::kAllPaths) +
                                  " ways together; use fewer alternatives");
    }
  }
  return check_inner_paths(paths);
}

// Within a rule too, what may be empty opens the way to what follows it.
Status Checker::check_inner_paths(const std::vector<std::uint64_t>& paths) const {
  for (std::uint32_t i = 0; i < model_.rules.size(); ++i) {
    std::uint64_t open = 0;
    for (const auto& one : model_.rules[i].elements) {
      if (one.kind != Kind::kReference) {
        open = 0;
        continue;
      }
      open += paths[one.value];
      if (open > GbnfBounds::kPaths) return too_many_paths(i);
      if (!can_be_empty_[one.value]) open = 0;
    }
  }
  return {};
}

tl::unexpected<Error> Checker::too_many_paths(std::uint32_t rule) const {
  return gbnf_error(model_.rules[rule].line, "rule " + name_of(rule) +
                                                 " can begin or go on in more than " +
                                                 std::to_string(GbnfBounds::kPaths) +
                                                 " ways; group alternatives by their first "
                                                 "characters, or use fewer optional parts");
}

}  // namespace

Result<GbnfModel> checked_gbnf(std::string_view grammar, std::size_t max_bytes) {
  auto model = parse_gbnf(grammar, max_bytes);
  if (!model) return model;
  if (auto checked = Checker(*model).run(); !checked) return fail(checked.error());
  return model;
}

Status check_gbnf(std::string_view grammar, std::size_t max_bytes) {
  const auto model = checked_gbnf(grammar, max_bytes);
  if (!model) return fail(model.error());
  return {};
}

}  // namespace berth::worker
