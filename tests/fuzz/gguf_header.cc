// Any bytes are a GGUF header or an error that can be shown; a header that is taken describes
// tensors that lie within the file.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/gguf/gguf.h"
#include "common/gguf/parse.h"
#include "common/text.h"
#include "tests/models/memory_source.h"

namespace {

void require(bool truth) {
  if (!truth) std::abort();
}

void check_header(const berth::gguf::Header& header, std::size_t size) {
  require(header.file_bytes == size);
  require(header.header_bytes <= size && header.data_offset >= header.header_bytes);
  for (const berth::gguf::Tensor& tensor : header.tensors) {
    require(tensor.bytes > 0 && tensor.bytes <= size && tensor.offset <= size);
    require(header.data_offset + tensor.offset + tensor.bytes <= size);
    require(!berth::gguf::type_name(tensor.type).empty());
  }
  for (const auto& [key, value] : header.metadata) {
    static_cast<void>(header.text(key));
    static_cast<void>(header.integer(key));
    static_cast<void>(header.number(key));
    static_cast<void>(header.truth(key));
  }
}

void check_error(const berth::Error& error) {
  constexpr std::size_t kLongest = 600;
  require(error.reason == berth::Reason::kInvalidArgument);
  require(error.message.starts_with("x.gguf: ") && error.message.size() < kLongest);
  require(berth::printable_line(error.message, kLongest) == error.message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  berth::test_models::MemorySource source(bytes);
  const auto header = berth::gguf::parse_header(source, size, "x.gguf");
  if (header) {
    check_header(*header, size);
  } else {
    check_error(header.error());
  }
  return 0;
}
