#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace berth {

// The value of `Enum` whose row of an array, one per value in their order, has that `name`; nothing
// where there is none.
template <typename Enum, typename Rows>
std::optional<Enum> value_named(const Rows& rows, std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.at(i).name == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace berth
