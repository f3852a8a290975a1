#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

// Builds one JSON text, in one line or indented by two blanks. The caller keeps the order: key()
// before every value of an object, as many ends as beginnings.
class JsonWriter {
 public:
  enum class Layout { kLine, kIndented };
  explicit JsonWriter(Layout layout) : indented_(layout == Layout::kIndented) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void text(std::string_view value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  // Not-a-number and infinities become null.
  void number(double value);
  // The shortest decimal form that reads back as the same float.
  void number(float value);
  void truth(bool value);
  void null();

  // Appends a string member.
  void member(std::string_view name, std::string_view value) {
    key(name);
    text(value);
  }

  [[nodiscard]] const std::string& str() const { return out_; }

 private:
  void open(char bracket);
  void close(char bracket);
  void before_value();
  void new_line();

  std::string out_;
  bool indented_;
  bool first_ = true;       // in the innermost object or array
  bool after_key_ = false;  // a value must follow
  int depth_ = 0;
};

}  // namespace berth
