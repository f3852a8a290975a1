#include "worker/grammar/gbnf_program.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace berth::worker {

GbnfProgram::GbnfProgram(const GbnfModel& model, std::vector<Token> tokens, std::uint32_t root)
    : classes_(model.classes), tokens_(std::move(tokens)), root_(root) {
  for (const auto& rule : model.rules) {
    first_alternative_.push_back(static_cast<std::uint32_t>(alternatives_.size()));
    alternatives_.push_back(static_cast<Position>(elements_.size()));
    for (const auto& [kind, value] : rule.elements) {
      switch (kind) {
        case GbnfElement::Kind::kCharacter:
          elements_.push_back({Kind::kCharacter, value});
          break;
        case GbnfElement::Kind::kClass:
          elements_.push_back({Kind::kClass, value});
          break;
        case GbnfElement::Kind::kToken:
          elements_.push_back({Kind::kToken, value});
          break;
        case GbnfElement::Kind::kReference:
          elements_.push_back({Kind::kReference, value});
          break;
        case GbnfElement::Kind::kAlternative:
          elements_.push_back({Kind::kEnd, 0});
          alternatives_.push_back(static_cast<Position>(elements_.size()));
          break;
      }
    }
    elements_.push_back({Kind::kEnd, 0});
  }
  first_alternative_.push_back(static_cast<std::uint32_t>(alternatives_.size()));
  for (const auto& token : tokens_) token_ids_.push_back(token.id);
  std::sort(token_ids_.begin(), token_ids_.end());
  find_kinds();
}

void GbnfProgram::find_kinds() {
  constexpr std::uint32_t kBits = 64;
  std::vector<std::uint64_t> begins((kLastCodePoint + 2) / kBits + 1);  // a bit per code point
  const auto mark = [&begins](std::uint32_t first, std::uint32_t last) {
    begins[first / kBits] |= std::uint64_t{1} << (first % kBits);
    begins[(last + 1) / kBits] |= std::uint64_t{1} << ((last + 1) % kBits);
  };
  mark(0, kLastCodePoint);
  for (const auto& element : elements_) {
    if (element.kind == Kind::kCharacter) mark(element.value, element.value);
  }
  for (const auto& ranges : classes_) {
    for (const auto& range : ranges) mark(range.first, range.last);
  }
  for (std::uint32_t word = 0; word < begins.size(); ++word) {
    for (auto bits = begins[word]; bits != 0; bits &= bits - 1) {
      first_of_kind_.push_back(word * kBits + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
  first_of_kind_.pop_back();  // behind the last
  for (std::uint32_t code_point = 0; code_point < kAscii; ++code_point) {
    const auto next = std::upper_bound(first_of_kind_.begin(), first_of_kind_.end(), code_point);
    ascii_kinds_.push_back(static_cast<std::uint32_t>(next - first_of_kind_.begin() - 1));
  }
}

std::uint32_t GbnfProgram::kind_of(std::uint32_t code_point) const {
  if (code_point < kAscii) return ascii_kinds_[code_point];
  const auto next = std::upper_bound(first_of_kind_.begin(), first_of_kind_.end(), code_point);
  return static_cast<std::uint32_t>(next - first_of_kind_.begin() - 1);
}

bool GbnfProgram::takes_some(const Element& element, std::uint32_t first,
                             std::uint32_t last) const {
  if (element.kind == Kind::kCharacter) return first <= element.value && element.value <= last;
  if (element.kind != Kind::kClass) return false;
  const auto& ranges = classes_[element.value];
  const auto next =
      std::lower_bound(ranges.begin(), ranges.end(), first,
                       [](const auto& range, std::uint32_t value) { return range.last < value; });
  return next != ranges.end() && next->first <= last;
}

std::uint32_t GbnfProgram::kind_of_token(std::uint32_t token) const {
  const auto found = std::lower_bound(token_ids_.begin(), token_ids_.end(), token);
  if (found == token_ids_.end() || *found != token) return 0;
  return static_cast<std::uint32_t>(found - token_ids_.begin() + 1);
}

}  // namespace berth::worker
