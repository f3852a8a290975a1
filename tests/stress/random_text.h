#pragma once

#include <cstddef>
#include <string>

#include "tests/stress/chance.h"

namespace berth::stress {

// Well-formed UTF-8 of about `bytes` bytes at most: words, characters of all planes, names of
// control tokens, white space, one character again and again, or nothing.
std::string random_text(Random& random, std::size_t bytes);

// Mostly short, now and then of some 100 KiB, seldom of megabytes.
std::string text_of_any_length(Random& random);

// A text with bytes that are no UTF-8.
std::string broken_text(Random& random);

void append_character(std::string& text, std::uint32_t code_point);

}  // namespace berth::stress
