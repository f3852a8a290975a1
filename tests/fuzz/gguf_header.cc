// Any bytes are a GGUF header or an error that can be shown; a header that is taken describes
// tensors that lie within the file, and costs something, or it is said why that cannot be known.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "common/gguf/gguf.h"
#include "common/gguf/parse.h"
#include "common/text.h"
#include "supervisor/core/memory/cost_model.h"
#include "supervisor/core/memory/model_shape.h"
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

void check_cost(berth::gguf::Header header) {
  berth::gguf::WholeModel model;
  model.tensors = std::move(header.tensors);
  model.first = std::move(header);
  model.summary.architecture =
      berth::printable_line(model.first.text("general.architecture").value_or(""), 64);
  const auto shape = berth::core::model_shape(model);
  if (!shape) {
    constexpr std::size_t kLongest = 600;
    require(shape.error().reason == berth::Reason::kInvalidArgument);
    require(shape.error().message.size() < kLongest);
    require(berth::printable_line(shape.error().message, kLongest) == shape.error().message);
    return;
  }
  const auto cost = berth::core::model_cost(*shape, {.window = 8192, .sequences = 4});
  const auto host = berth::core::charge_of(cost, {});
  const auto split = berth::core::charge_of(cost, {.shares = {{.device = 1, .layers = 2}}});
  std::uint64_t weights = 0;
  for (const auto& tensor : model.tensors) weights += tensor.bytes;
  require(host.weights.bytes[0] >= weights);
  require(split.kv.bytes[0] <= host.kv.bytes[0]);
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
    check_cost(*header);
  } else {
    check_error(header.error());
  }
  return 0;
}
