#include "common/gguf/input.h"

#include <system_error>

#include "common/gguf/gguf.h"
#include "common/text.h"
#include "common/units.h"

namespace berth::gguf {

tl::unexpected<Error> Input::bad(std::string_view what) const {
  return fail(Reason::kInvalidArgument, std::string(file_name) + ": " + std::string(what));
}

tl::unexpected<Error> Input::cut(std::string_view where) const {
  const std::string at = " at byte " + std::to_string(reader.position());
  switch (reader.failure()) {
    case ByteReader::Failure::kError:
      return fail(Reason::kInternal, std::string(file_name) + ": cannot be read" + at + ": " +
                                         std::system_category().message(reader.error_number()));
    case ByteReader::Failure::kShrunk:
      return bad("the file was cut while it was read: it ended" + at + ", in " +
                 std::string(where));
    case ByteReader::Failure::kLimit:
      return bad("its header is longer than " + format_bytes(kMaxHeaderBytes));
    case ByteReader::Failure::kEnd:
    case ByteReader::Failure::kNone:
      break;
  }
  return bad("truncated header: the file has " + std::to_string(reader.size()) +
             " bytes and ends within " + std::string(where));
}

std::string quoted(std::string_view name) {
  constexpr std::size_t kShown = 80;
  return "'" + printable_line(name, kShown) + "'";
}

}  // namespace berth::gguf
