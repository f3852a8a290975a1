#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth::worker {

// How many tokens a text has at the least; a text with more than the window can be refused without
// tokenizing it, which takes a second and more for some megabytes. `bound` is
// Engine::token_bytes_bound(); where that is 0 nothing is known, and it says 0. Runs at memory
// speed.
//
// Characters are counted, not bytes, and spaces are not, as tokenizers may change letters' case and
// strip spaces beside special tokens.
std::size_t fewest_tokens(std::string_view text, std::uint32_t bound);

}  // namespace berth::worker
