#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::gateway::openai {

// What a number may be.
struct Range {
  double low = 0;
  double high = 0;
  bool above_low = false;  // `low` itself is not in it
};

// The first thing that was wrong with a request. Later ones are not kept.
class FirstError {
 public:
  void add(std::string_view param, std::string message);
  [[nodiscard]] bool any() const { return error_.has_value(); }
  [[nodiscard]] Status status() const;

 private:
  std::optional<Error> error_;
};

// One object of a request, with its place in it, so that errors name a field as OpenAI does:
// "messages[0].content[1].type". null counts as absent, as OpenAI has it. Refers to the object and
// to the list of errors; reads nothing twice, owns nothing.
class Fields {
 public:
  Fields(const boost::json::object& object, std::string path, FirstError& errors)
      : object_(object), path_(std::move(path)), errors_(errors) {}

  // Null where it is absent.
  [[nodiscard]] const boost::json::value* find(std::string_view name) const;
  // The field's name as errors give it.
  [[nodiscard]] std::string path(std::string_view name) const;

  // Each is absent where the field is absent or wrong; the latter is in the list of errors.
  std::optional<std::string> text(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  // Also a number as 5.0 is whole.
  std::optional<std::int64_t> whole(std::string_view name, std::int64_t low,
                                    std::int64_t high) const;
  std::optional<float> number(std::string_view name, const Range& range) const;
  std::optional<Fields> object(std::string_view name) const;
  const boost::json::array* list(std::string_view name) const;

  void refuse(std::string_view name, std::string message) const {
    errors_.add(path(name), std::move(message));
  }
  // "temperature must be WANTED, not VALUE."
  void refuse_value(std::string_view name, std::string_view wanted,
                    const boost::json::value& value) const;
  [[nodiscard]] FirstError& errors() const { return errors_; }

 private:
  const boost::json::object& object_;
  std::string path_;
  FirstError& errors_;
};

// The whole number that a value is; absent: it is none of 64 bits.
std::optional<std::int64_t> as_whole(const boost::json::value& value);

}  // namespace berth::gateway::openai
