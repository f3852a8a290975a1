// Any bytes are a schema that becomes a grammar which the guard takes, tools that become a schema,
// or an error that can be shown; any bytes are a grammar that the guard takes or refuses. The first
// byte says which: 'g' a grammar, 't' tools, else a schema.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/text.h"
#include "worker/grammar/gbnf_check.h"
#include "worker/grammar/json_schema.h"
#include "worker/grammar/tool_call_schema.h"

namespace {

using berth::worker::check_gbnf;

void require(bool truth) {
  if (!truth) std::abort();
}

void check_error(const berth::Error& error) {
  constexpr std::size_t kLongest = 1'200;
  require(error.reason == berth::Reason::kInvalidArgument);
  require(!error.message.empty() && error.message.size() < kLongest);
  require(berth::printable_line(error.message, kLongest) == error.message);
}

void convert(std::string_view schema) {
  const auto grammar = berth::worker::json_schema_to_gbnf(schema);
  if (!grammar) {
    check_error(grammar.error());
    // Only what a grammar costs is left to the guard; a fault in the rules would be the
    // converter's.
    const std::string_view message = grammar.error().message;
    if (message.starts_with("The schema is too large as a grammar")) {
      require(message.find("more than") != std::string_view::npos ||
              message.find("above the limit") != std::string_view::npos);
    }
    return;
  }
  require(check_gbnf(*grammar, berth::worker::GbnfBounds::kConverterBytes).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('g')) {
    const auto checked = check_gbnf(bytes.substr(1));
    if (!checked) check_error(checked.error());
  } else if (bytes.starts_with('t')) {
    const auto schema = berth::worker::tool_call_schema(bytes.substr(1));
    if (schema) {
      convert(*schema);
    } else {
      check_error(schema.error());
    }
  } else {
    convert(bytes);
  }
  return 0;
}
