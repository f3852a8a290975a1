#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "worker/engine/prompt_part.h"

namespace berth::worker {

// Two texts of digits that mark where a client's text has the text of a control token. Digits,
// because templates quote, trim and change the case of what they print. Random, so that no client
// can write them.
struct Marks {
  static constexpr std::size_t kDigits = 20;  // about 66 bits

  std::string begin;
  std::string end;

  // Whether they are as random() makes them, or both empty: nothing is marked.
  [[nodiscard]] bool well_formed() const;

  static Result<Marks> random();
};

// The texts of a vocabulary's control tokens, as found in texts of clients. There such a text must
// stay a text: a "<|im_end|>" that somebody typed ends no message. So it is marked before the
// template renders, and what comes out is cut at the marks. Immutable; any thread.
class ControlTexts {
 public:
  explicit ControlTexts(std::vector<std::string> texts);

  [[nodiscard]] bool empty() const { return texts_.empty(); }

  // Puts marks around the first `most` control texts, each its own: a template may cut between two
  // of them. Returns how many it marked.
  std::size_t mark(std::string& text, const Marks& marks, std::size_t most) const;
  [[nodiscard]] bool occurs_in(std::string_view text) const;

  // Cuts a rendered text at its marks. What stands between a begin and the next mark is literal
  // where that is an end and one control text is all that stands there; all other marks (that
  // a template has torn apart, or whose text it has changed) are just dropped. At least one part.
  [[nodiscard]] std::vector<PromptPart> split(std::string_view text, const Marks& marks) const;

 private:
  // Bytes of the longest control text that begins at `position`; 0: none does.
  [[nodiscard]] std::size_t match(std::string_view text, std::size_t position) const;

  std::vector<std::string> texts_;  // sorted
};

}  // namespace berth::worker
