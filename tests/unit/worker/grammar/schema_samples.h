#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace berth::worker::test {

// Random schemas of the supported subset, and documents for them. A seed repeats everything.
class SchemaSamples {
 public:
  explicit SchemaSamples(std::uint64_t seed) : random_(seed) {}

  // A schema with definitions, some of them recursive.
  boost::json::object document_schema();
  // A value that the schema allows and the grammar has to take.
  boost::json::value value_of(const boost::json::object& schema);
  // The text with a few characters changed, dropped, doubled or put in.
  std::string damaged(std::string text);

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

 private:
  bool coin() { return below(2) == 0; }
  boost::json::value schema(int depth, bool may_refer);
  boost::json::value scalar_schema();
  boost::json::object string_schema();
  boost::json::object number_schema();
  boost::json::object array_schema(int depth);
  boost::json::object object_schema(int depth, bool closed_at_will);
  boost::json::value any_value(int depth);
  std::string text(std::size_t least, std::size_t most);

  boost::json::value value(const boost::json::value& schema, const boost::json::object& root,
                           int depth);
  boost::json::value object_value(const boost::json::object& schema,
                                  const boost::json::object& root, int depth);
  boost::json::value array_value(const boost::json::object& schema, const boost::json::object& root,
                                 int depth);
  boost::json::value number_value(const boost::json::object& schema, bool whole);
  boost::json::value format_value(const std::string& format);

  std::mt19937_64 random_;
};

// Whether a schema of SchemaSamples allows a value, by the rules of JSON Schema, except that an
// object with `properties` and without `additionalProperties` is closed.
bool is_valid(const boost::json::value& schema, const boost::json::value& value,
              const boost::json::object& root);

// JSON with a space behind every comma and colon.
std::string spaced_text(const boost::json::value& value);

}  // namespace berth::worker::test
