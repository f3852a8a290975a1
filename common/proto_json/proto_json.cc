#include "common/proto_json/proto_json.h"

#include <google/protobuf/descriptor.h>

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// One value of a field: element `index` of a repeated one, or the field itself.
void write_value(JsonWriter& json, const Message& message, const FieldDescriptor* field,
                 int index) {
  const Reflection* reflection = message.GetReflection();
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      json.integer(repeated ? reflection->GetRepeatedInt32(message, field, index)
                            : reflection->GetInt32(message, field));
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      json.integer(repeated ? reflection->GetRepeatedInt64(message, field, index)
                            : reflection->GetInt64(message, field));
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      json.unsigned_integer(repeated ? reflection->GetRepeatedUInt32(message, field, index)
                                     : reflection->GetUInt32(message, field));
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      json.unsigned_integer(repeated ? reflection->GetRepeatedUInt64(message, field, index)
                                     : reflection->GetUInt64(message, field));
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      json.number(repeated ? reflection->GetRepeatedDouble(message, field, index)
                           : reflection->GetDouble(message, field));
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      json.number(repeated ? reflection->GetRepeatedFloat(message, field, index)
                           : reflection->GetFloat(message, field));
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      json.truth(repeated ? reflection->GetRepeatedBool(message, field, index)
                          : reflection->GetBool(message, field));
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      json.text(repeated ? reflection->GetRepeatedEnum(message, field, index)->name()
                         : reflection->GetEnum(message, field)->name());
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      json.text(repeated ? reflection->GetRepeatedString(message, field, index)
                         : reflection->GetString(message, field));
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      write_json(json, repeated ? reflection->GetRepeatedMessage(message, field, index)
                                : reflection->GetMessage(message, field));
      return;
  }
}

}  // namespace

void write_json(JsonWriter& json, const Message& message) {
  const auto* descriptor = message.GetDescriptor();
  const Reflection* reflection = message.GetReflection();
  json.begin_object();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->is_repeated()) {
      json.key(field->name());
      json.begin_array();
      const int size = reflection->FieldSize(message, field);
      for (int index = 0; index < size; ++index) write_value(json, message, field, index);
      json.end_array();
      continue;
    }
    if (field->has_presence() && !reflection->HasField(message, field)) continue;
    json.key(field->name());
    write_value(json, message, field, 0);
  }
  json.end_object();
}

std::string to_json(const Message& message, JsonWriter::Layout layout) {
  JsonWriter json(layout);
  write_json(json, message);
  return json.str();
}

}  // namespace berth
