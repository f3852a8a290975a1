#include "worker/grammar/rule_book.h"

#include <cmath>

namespace berth::worker {
namespace {

std::string braces(std::uint64_t least, std::optional<std::uint64_t> most) {
  if (most == least) return "{" + std::to_string(least) + "}";
  return "{" + std::to_string(least) + "," + (most ? std::to_string(*most) : "") + "}";
}

std::uint64_t block_of(std::uint64_t count) {
  return static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
}

}  // namespace

std::string RuleBook::reserve(std::string_view hint) {
  constexpr std::size_t kHintBytes = 24;
  std::string name = "r" + std::to_string(++names_);
  std::string kept;
  for (const char c : hint.substr(0, kHintBytes)) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (letter) {
      kept += c;
    } else if (!kept.empty() && kept.back() != '-') {
      kept += '-';
    }
  }
  while (!kept.empty() && kept.back() == '-') kept.pop_back();
  return kept.empty() ? name : name + "-" + kept;
}

void RuleBook::define(std::string name, std::string body) {
  bytes_ += name.size() + body.size() + 6;
  if (!status()) return;
  rules_.emplace_back(std::move(name), std::move(body));
}

std::string RuleBook::share(std::string_view hint, const std::string& body) {
  const auto found = by_body_.find(body);
  if (found != by_body_.end()) return found->second;
  auto name = reserve(hint);
  if (status()) by_body_.emplace(body, name);
  define(name, body);
  return name;
}

std::string RuleBook::repeat(const std::string& item, std::uint64_t least,
                             std::optional<std::uint64_t> most, std::uint64_t written_out) {
  if (most && *most > kLargestCount) most.reset();
  if (!most && least == 0) return item + "*";
  if (!most && least == 1) return item + "+";
  if (most == 1U) return least == 1 ? item : item + "?";
  if (most == 0U) return "\"\"";
  if (most.value_or(least) <= written_out) return item + braces(least, most);
  const auto shared = share("item", item);
  if (!most) return exactly(shared, least, written_out) + " " + shared + "*";
  std::string text;
  if (least > 0) text = exactly(shared, least, written_out);
  if (*most > least) text += (text.empty() ? "" : " ") + up_to(shared, *most - least, written_out);
  return text;
}

std::string RuleBook::exactly(const std::string& item, std::uint64_t count,
                              std::uint64_t written_out) {
  if (count <= written_out) return item + braces(count, count);
  const auto size = block_of(count);
  const auto block = share("block", item + braces(size, size));
  const auto rest = count % size;
  return block + braces(count / size, count / size) +
         (rest > 0 ? " " + item + braces(rest, rest) : "");
}

// q blocks of k and r more: fewer than q blocks and a piece of one, or all of them and up to r.
std::string RuleBook::up_to(const std::string& item, std::uint64_t count,
                            std::uint64_t written_out) {
  if (count <= written_out) return item + braces(0, count);
  const auto size = block_of(count);
  const auto blocks = count / size;
  const auto rest = count % size;
  const auto block = share("block", item + braces(size, size));
  return "(" + block + braces(0, blocks - 1) + " " + item + braces(0, size - 1) + " | " + block +
         braces(blocks, blocks) + (rest > 0 ? " " + item + braces(0, rest) : "") + ")";
}

Status RuleBook::status() const {
  if (names_ > kRules || rules_.size() > kRules) {
    return fail(Reason::kInvalidArgument,
                "The schema needs a grammar of more than " + std::to_string(kRules) +
                    " rules; make it smaller, with fewer properties or values.");
  }
  if (bytes_ > kBytes) {
    return fail(Reason::kInvalidArgument,
                "The schema needs a grammar of more than " + std::to_string(kBytes) +
                    " bytes; make it smaller, with fewer properties or values.");
  }
  return {};
}

std::string RuleBook::text() const {
  std::string text;
  text.reserve(bytes_);
  const auto append = [&text](const auto& rule) {
    text.append(rule.first).append(" ::= ").append(rule.second).append("\n");
  };
  for (const auto& rule : rules_) {
    if (rule.first == "root") append(rule);
  }
  for (const auto& rule : rules_) {
    if (rule.first != "root") append(rule);
  }
  return text;
}

}  // namespace berth::worker
