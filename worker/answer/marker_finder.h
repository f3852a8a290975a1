#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::worker {

// Looks for the first of a few fixed texts. None is empty, none is the start of another.
// Stateless, so that what follows a border can be read again: costs bytes times markers.
class MarkerFinder {
 public:
  struct Match {
    std::size_t at = 0;      // where it starts; the size of the text when there is none
    std::size_t marker = 0;  // its index; only if complete
    bool complete = false;   // false with `at` within the text: it may become one
  };

  MarkerFinder() = default;
  explicit MarkerFinder(std::vector<std::string> markers);

  // The first place in `text` where one of the first `count` markers is, or may be once the text
  // goes on.
  [[nodiscard]] Match find(std::string_view text, std::size_t count) const;
  [[nodiscard]] Match find(std::string_view text) const { return find(text, markers_.size()); }
  [[nodiscard]] const std::string& marker(std::size_t index) const { return markers_[index]; }

 private:
  std::vector<std::string> markers_;
  std::string first_bytes_;
};

}  // namespace berth::worker
