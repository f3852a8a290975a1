#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "common/proto_json/json_writer.h"

namespace berth {

// Writes a message as a JSON object with the names of the .proto file. Unlike protobuf's own JSON,
// made for scripts: 64-bit integers are numbers, plain fields are there also when they are 0 or
// empty, bytes are text (malformed UTF-8 as U+FFFD). Messages, `optional` fields and members of a
// oneof are there only when they are set.
void write_json(JsonWriter& json, const google::protobuf::Message& message);

// The same as a text of its own, without a newline.
std::string to_json(const google::protobuf::Message& message, JsonWriter::Layout layout);

}  // namespace berth
