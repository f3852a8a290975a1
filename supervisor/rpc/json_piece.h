#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace berth::rpc {

// What a piece of JSON that a client wrote may be.
enum class JsonKind : std::uint8_t {
  kArray,
  kObject,
  kTextOrObject,
  kSchema,  // an object, true or false
};

// Whether that text is exactly one JSON value of that kind, so that it can be put into another one
// as it is. Reads through all of it, keeps nothing. Errors: kInvalidArgument for `field`, where it
// is not JSON, of another kind, followed by something, or nested more than 144 deep (as bodies may
// be over HTTP).
Status check_json(std::string_view text, std::string_view field, JsonKind kind);

}  // namespace berth::rpc
