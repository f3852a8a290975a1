#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "worker/grammar/schema_document.h"

namespace berth::worker {

// Turns schemas into equal ones without $ref, allOf, oneOf (becomes anyOf), nullable and
// annotations at their top; what lies within their properties and items stays as it is. Lives as
// long as its document; one thread.
class SchemaFlattener {
 public:
  explicit SchemaFlattener(const SchemaDocument& document) : document_(document) {}

  // The result is true, false or an object; true is given as an empty object.
  // Errors: kInvalidArgument: a $ref that leads to itself, parts that cannot be joined, or more
  // work than SchemaBounds::kWork.
  Result<boost::json::value> flatten(const boost::json::value& schema, const std::string& pointer);

  // The schema of what both allow. Both are flat.
  Result<boost::json::value> merge(boost::json::value first, const boost::json::value& second,
                                   const std::string& pointer);

  // Whether a value can be of both, as far as `type` says. Both are flat.
  static bool share_a_type(const boost::json::object& first, const boost::json::value& second);

  // Counts work; kInvalidArgument once it is too much.
  Status charge(std::size_t bytes);

 private:
  Result<boost::json::value> own_part(const boost::json::object& schema,
                                      const std::string& pointer);
  Status merge_keyword(std::string_view name, boost::json::value& into,
                       const boost::json::value& other, const std::string& pointer);
  static Status adopt_properties(boost::json::object& closed, const boost::json::object& other,
                                 const std::string& pointer);

  const SchemaDocument& document_;
  std::vector<std::string> open_;  // what is being flattened, for loops
  std::size_t work_ = 0;
};

}  // namespace berth::worker
