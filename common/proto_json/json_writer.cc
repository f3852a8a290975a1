#include "common/proto_json/json_writer.h"

#include "common/json_text.h"

namespace berth {

void JsonWriter::key(std::string_view name) {
  before_value();
  append_json_string(out_, name);
  out_ += indented_ ? ": " : ":";
  after_key_ = true;
}

void JsonWriter::text(std::string_view value) {
  before_value();
  append_json_string(out_, value);
}

void JsonWriter::integer(std::int64_t value) {
  before_value();
  out_ += std::to_string(value);
}

void JsonWriter::unsigned_integer(std::uint64_t value) {
  before_value();
  out_ += std::to_string(value);
}

void JsonWriter::number(double value) {
  before_value();
  append_json_number(out_, value);
}

void JsonWriter::number(float value) {
  before_value();
  append_json_number(out_, value);
}

void JsonWriter::truth(bool value) {
  before_value();
  out_ += value ? "true" : "false";
}

void JsonWriter::null() {
  before_value();
  out_ += "null";
}

void JsonWriter::open(char bracket) {
  before_value();
  out_.push_back(bracket);
  ++depth_;
  first_ = true;
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (!first_) new_line();
  out_.push_back(bracket);
  first_ = false;
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) out_.push_back(',');
  if (depth_ > 0) new_line();
  first_ = false;
}

void JsonWriter::new_line() {
  if (!indented_) return;
  out_.push_back('\n');
  out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
}

}  // namespace berth
