#include "worker/answer/marker_finder.h"

#include <algorithm>
#include <utility>

namespace berth::worker {

MarkerFinder::MarkerFinder(std::vector<std::string> markers) : markers_(std::move(markers)) {
  for (const auto& marker : markers_) {
    if (first_bytes_.find(marker.front()) == std::string::npos) {
      first_bytes_.push_back(marker.front());
    }
  }
}

MarkerFinder::Match MarkerFinder::find(std::string_view text, std::size_t count) const {
  Match none{text.size(), 0, false};
  if (count == 0) return none;
  for (auto at = text.find_first_of(first_bytes_); at != std::string_view::npos;
       at = text.find_first_of(first_bytes_, at + 1)) {
    const auto rest = text.substr(at);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view marker = markers_[i];
      const auto size = std::min(marker.size(), rest.size());
      if (rest.substr(0, size) == marker.substr(0, size)) return {at, i, size == marker.size()};
    }
  }
  return none;
}

}  // namespace berth::worker
