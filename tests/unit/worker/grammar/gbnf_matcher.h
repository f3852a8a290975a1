#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace berth::worker::test {

// Whether a text belongs to a GBNF grammar: a parser and a matcher of their own, so that a mistake
// of the product does not hide itself. For grammars that are not left-recursive. Throws
// std::runtime_error on a malformed grammar and after too many steps.
class GbnfMatcher {
 public:
  explicit GbnfMatcher(std::string_view grammar);

  bool matches(std::string_view text);

 private:
  enum class Kind { kLiteral, kClass, kReference, kSequence, kChoice, kRepeat };
  struct Node {
    Kind kind = Kind::kSequence;
    std::vector<std::uint32_t> characters;                        // kLiteral
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  // kClass
    bool negated = false;
    std::string name;                // kReference
    std::vector<std::size_t> parts;  // kSequence, kChoice; kRepeat has one
    std::size_t least = 0;
    std::size_t most = 0;
  };

  std::size_t add(Node node);
  std::size_t parse_choice(bool nested);
  std::size_t parse_sequence(bool nested);
  std::size_t parse_item(bool nested);
  std::size_t parse_repeat(std::size_t item);
  std::uint32_t parse_character();
  std::size_t parse_number();
  std::string parse_name();
  void skip(bool newlines);

  const std::vector<std::size_t>& ends(std::size_t node, std::size_t begin);
  std::vector<std::size_t> compute(const Node& node, std::size_t begin);

  std::u32string grammar_;
  std::size_t at_ = 0;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> rules_;
  std::u32string text_;
  std::unordered_map<std::uint64_t, std::unique_ptr<std::vector<std::size_t>>> known_;
};

}  // namespace berth::worker::test
