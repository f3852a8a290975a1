#pragma once

#include <string>
#include <string_view>

#include "common/gguf/byte_reader.h"
#include "common/result.h"

namespace berth::gguf {

// A header that is being read, and the name that its errors begin with.
struct Input {
  ByteReader& reader;
  std::string_view file_name;

  // "NAME: WHAT"
  [[nodiscard]] tl::unexpected<Error> bad(std::string_view what) const;
  // Why the reader's last call failed, `where` being what it was about to read: "the value of 'x'".
  [[nodiscard]] tl::unexpected<Error> cut(std::string_view where) const;
};

// A name out of the file, fit for a message: quoted, printable, at most 80 bytes.
std::string quoted(std::string_view name);

}  // namespace berth::gguf
