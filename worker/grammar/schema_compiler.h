#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/result.h"
#include "worker/grammar/rule_book.h"
#include "worker/grammar/schema_document.h"
#include "worker/grammar/schema_flattener.h"

namespace berth::worker {

// Writes the rules for the schemas of one document. Lives for one conversion; one thread.
//
// A rule's body begins with a character or with rules that do (leaves of anyOf), never with a rule
// that is being written: so no grammar is left-recursive, and recursive schemas become recursive
// rules. Bodies wait in a queue instead of on the stack.
class SchemaCompiler {
 public:
  explicit SchemaCompiler(const SchemaDocument& document)
      : document_(document), flattener_(document) {}

  // The name of a rule for the whole document; all rules are in `book()` then.
  Result<std::string> compile();
  RuleBook& book() { return book_; }

 private:
  // A schema without anyOf, with one type or with listed values.
  struct Leaf {
    std::string type;  // of the schema; "any", "values"
    boost::json::object schema;
  };
  struct Job {
    std::string name;
    boost::json::value schema;  // flat
    std::string pointer;        // shown_pointer()
  };

  Result<std::string> use(const boost::json::value& schema, const std::string& pointer,
                          std::string_view hint);
  Status write(const Job& job);

  // anyOf and lists of types (schema_leaves.cc).
  struct Leaves {
    std::vector<Leaf> list;
    std::unordered_set<std::string> texts;
    std::unordered_set<std::string> open;  // schemas that are being taken apart
    std::unordered_set<std::string> done;
  };
  Status collect(const boost::json::value& flat, const std::string& pointer, Leaves& leaves);
  Status collect_alternatives(const boost::json::object& flat, const std::string& pointer,
                              Leaves& leaves);
  static Status add_leaf(const boost::json::object& flat, const std::string& pointer,
                         Leaves& leaves);

  // Bodies of rules (schema_bodies.cc, object_body.cc).
  Result<std::string> body(const Leaf& leaf, const std::string& pointer);
  Result<std::string> values_body(const Leaf& leaf, const std::string& pointer);
  Result<std::string> string_body(const Leaf& leaf, const std::string& pointer);
  Result<std::string> number_body(const Leaf& leaf, const std::string& pointer);
  Result<std::string> array_body(const Leaf& leaf, const std::string& pointer);
  Result<std::string> object_body(const Leaf& leaf, const std::string& pointer);

  const SchemaDocument& document_;
  SchemaFlattener flattener_;
  RuleBook book_;
  std::deque<Job> jobs_;
  std::unordered_map<std::string, std::string> by_reference_;
  std::unordered_map<std::string, std::string> by_text_;
};

}  // namespace berth::worker
