#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"

namespace berth::worker {

// Values of the command line. `name` is the option's, for errors: kInvalidArgument, says what was
// expected.

Status set_text(std::string_view name, std::string_view text, std::string& out);

// A whole number from `lowest` to `highest`.
Status set_number(std::string_view name, std::string_view text, std::uint32_t lowest,
                  std::uint32_t highest, std::uint32_t& out);

// One of `choices`.
Status set_choice(std::string_view name, std::string_view text,
                  std::span<const std::string_view> choices, std::string& out);

// "A,B": appends the names, at most 64 in all, none empty.
Status add_names(std::string_view name, std::string_view text, std::vector<std::string>& out);

// "3,1": finite numbers of which none is negative and one is not 0.
Status set_shares(std::string_view name, std::string_view text, std::vector<float>& out);

// "PATH" or "PATH=SCALE": the scale (-100 to 100) is what follows the last equals sign, if that is
// a number, else 1. At most 64 in all.
Status add_scaled_path(std::string_view name, std::string_view text,
                       std::vector<std::pair<std::string, float>>& out);

}  // namespace berth::worker
