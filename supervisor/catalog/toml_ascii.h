#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::catalog {

// A TOML text that means the same and is ASCII but for literal strings.
struct AsciiToml {
  std::string text;  // with the lines of the original

  // The first character beyond ASCII that stands outside of strings and comments, where TOML does
  // not allow it; a '?' is in its place. 0: there is none.
  std::uint32_t foreign_line = 0;
  std::string foreign;  // the character
};

// Characters beyond ASCII become escapes in basic strings and vanish from comments. The TOML
// library (3.3) has undefined behaviour where it looks for white space and meets one of them, which
// happens outside of strings and in multi-line ones. `text` is valid UTF-8.
AsciiToml ascii_toml(std::string_view text);

}  // namespace berth::catalog
