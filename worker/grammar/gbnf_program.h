#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/grammar/gbnf_model.h"

namespace berth::worker {

// A checked grammar laid out for walking through it: all elements of all rules one behind the
// other. Immutable; any thread.
class GbnfProgram {
 public:
  using Position = std::uint32_t;
  enum class Kind : std::uint8_t { kEnd, kCharacter, kClass, kToken, kReference };
  struct Element {
    Kind kind = Kind::kEnd;
    std::uint32_t value = 0;  // as in GbnfElement
  };
  // A token as the model's vocabulary numbers it.
  struct Token {
    std::uint32_t id = 0;
    bool any_other = false;
  };

  // `tokens`: those of the model, in its order. `root`: index of the rule to begin with.
  GbnfProgram(const GbnfModel& model, std::vector<Token> tokens, std::uint32_t root);

  [[nodiscard]] const Element& at(Position position) const { return elements_[position]; }
  // Where the alternatives of a rule begin.
  [[nodiscard]] std::span<const Position> alternatives(std::uint32_t rule) const {
    return std::span(alternatives_)
        .subspan(first_alternative_[rule], first_alternative_[rule + 1] - first_alternative_[rule]);
  }
  [[nodiscard]] std::uint32_t root() const { return root_; }

  // Code points that no element tells apart are one kind, numbered by their order from 0 on;
  // so the kinds of ASCII are below 128.
  [[nodiscard]] std::uint32_t kind_of(std::uint32_t code_point) const;
  [[nodiscard]] std::uint32_t kinds() const {
    return static_cast<std::uint32_t>(first_of_kind_.size());
  }
  // Whether a kCharacter or kClass takes one of the code points from `first` to `last`.
  [[nodiscard]] bool takes_some(const Element& element, std::uint32_t first,
                                std::uint32_t last) const;
  [[nodiscard]] bool takes(const Element& element, std::uint32_t code_point) const {
    return element.kind == Kind::kCharacter ? element.value == code_point
                                            : takes_some(element, code_point, code_point);
  }

  [[nodiscard]] bool has_tokens() const { return !tokens_.empty(); }
  // Tokens that no element tells apart are one kind.
  [[nodiscard]] std::uint32_t kind_of_token(std::uint32_t token) const;
  [[nodiscard]] bool takes_token(const Element& element, std::uint32_t token) const {
    const auto& named = tokens_[element.value];
    return (named.id == token) != named.any_other;
  }

 private:
  static constexpr std::uint32_t kAscii = 128;

  void find_kinds();

  std::vector<Element> elements_;
  std::vector<Position> alternatives_;
  std::vector<std::uint32_t> first_alternative_;  // per rule, and the end
  std::vector<std::vector<CodePointSet::Range>> classes_;
  std::vector<Token> tokens_;
  std::vector<std::uint32_t> token_ids_;  // in order
  std::uint32_t root_;
  std::vector<std::uint32_t> first_of_kind_;  // code points, in order
  std::vector<std::uint32_t> ascii_kinds_;
};

}  // namespace berth::worker
