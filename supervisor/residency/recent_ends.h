#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "common/result.h"

namespace berth::residency {

// Why the last instances ended, for requests that ask after the instance has been forgotten. A
// bounded ring; core strand.
class RecentEnds {
 public:
  static constexpr std::size_t kKept = 128;

  void add(std::string instance_id, Error error) {
    if (ends_.size() >= kKept) ends_.pop_front();
    ends_.emplace_back(std::move(instance_id), std::move(error));
  }
  [[nodiscard]] std::optional<Error> find(const std::string& instance_id) const {
    for (const auto& [id, error] : ends_) {
      if (id == instance_id) return error;
    }
    return std::nullopt;
  }

 private:
  std::deque<std::pair<std::string, Error>> ends_;
};

}  // namespace berth::residency
