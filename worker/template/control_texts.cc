#include "worker/template/control_texts.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace berth::worker {
namespace {

Result<std::string> random_digits() {
  std::array<std::uint8_t, Marks::kDigits> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail(Reason::kInternal, "The kernel gave no random numbers.");
  }
  std::string digits;
  for (const auto byte : bytes) digits.push_back(static_cast<char>('0' + byte % 10));
  return digits;
}

}  // namespace

bool Marks::well_formed() const {
  const auto is_mark = [](const std::string& text) {
    return text.size() == kDigits &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return (begin.empty() && end.empty()) || (is_mark(begin) && is_mark(end));
}

Result<Marks> Marks::random() {
  Marks marks;
  for (auto* const mark : {&marks.begin, &marks.end}) {
    auto digits = random_digits();
    if (!digits) return fail(digits.error());
    *mark = std::move(*digits);
  }
  return marks;
}

ControlTexts::ControlTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::erase(texts_, std::string());
  std::sort(texts_.begin(), texts_.end());
  texts_.erase(std::unique(texts_.begin(), texts_.end()), texts_.end());
}

// Goes down the sorted texts by one byte at a time, so that a text of nothing but the first byte of
// many control texts costs no more than another.
std::size_t ControlTexts::match(std::string_view text, std::size_t position) const {
  auto low = texts_.begin();
  auto high = texts_.end();
  std::size_t longest = 0;
  for (std::size_t depth = 0; low != high && position + depth < text.size(); ++depth) {
    const auto wanted = static_cast<unsigned char>(text[position + depth]);
    const auto byte = [depth](const std::string& one) {
      return depth < one.size() ? static_cast<unsigned char>(one[depth]) : -1;
    };
    low = std::lower_bound(low, high, static_cast<int>(wanted),
                           [&](const std::string& one, int value) { return byte(one) < value; });
    high = std::upper_bound(low, high, static_cast<int>(wanted),
                            [&](int value, const std::string& one) { return value < byte(one); });
    if (low != high && low->size() == depth + 1) longest = depth + 1;
  }
  return longest;
}

bool ControlTexts::occurs_in(std::string_view text) const {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (match(text, at) > 0) return true;
  }
  return false;
}

std::size_t ControlTexts::mark(std::string& text, const Marks& marks, std::size_t most) const {
  std::string marked;
  std::size_t count = 0;
  std::size_t kept = 0;  // bytes of `text` that are in `marked`
  for (std::size_t at = 0; at < text.size() && count < most;) {
    const auto size = match(text, at);
    if (size == 0) {
      ++at;
      continue;
    }
    ++count;
    marked.append(text, kept, at - kept).append(marks.begin);
    marked.append(text, at, size).append(marks.end);
    at += size;
    kept = at;
  }
  if (count > 0) text = marked.append(text, kept);
  return count;
}

std::vector<PromptPart> ControlTexts::split(std::string_view text, const Marks& marks) const {
  std::vector<PromptPart> parts;
  const auto append = [&parts](std::string_view piece, bool literal) {
    if (piece.empty()) return;
    if (parts.empty() || parts.back().literal != literal) parts.push_back({"", literal});
    parts.back().text.append(piece);
  };
  std::size_t at = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  while (!marks.begin.empty() && !marks.end.empty()) {
    if (begin <= at) begin = text.find(marks.begin, at);
    if (end <= at) end = text.find(marks.end, at);
    const auto mark = std::min(begin, end);
    if (mark == std::string_view::npos) break;
    append(text.substr(at, mark - at), false);
    at = mark + marks.begin.size();
    if (mark != begin || end == std::string_view::npos) continue;
    const auto inside = text.substr(at, end - at);
    if (!inside.empty() && match(inside, 0) == inside.size()) {
      append(inside, true);
      at = end + marks.end.size();
    }
  }
  append(text.substr(at), false);
  if (parts.empty()) parts.emplace_back();
  return parts;
}

}  // namespace berth::worker
