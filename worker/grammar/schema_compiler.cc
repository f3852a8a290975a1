#include "worker/grammar/schema_compiler.h"

#include <algorithm>
#include <array>
#include <utility>

namespace berth::worker {
namespace json = boost::json;
namespace {

// The target, where a schema says nothing but $ref.
const json::value* only_reference(const json::value& schema) {
  if (!schema.is_object()) return nullptr;
  const json::value* reference = nullptr;
  for (const auto& member : schema.get_object()) {
    const auto shape = keyword_shape({member.key().data(), member.key().size()});
    if (shape == KeywordShape::kReference) {
      reference = &member.value();
    } else if (shape != KeywordShape::kAnnotation && shape != KeywordShape::kDefinitions) {
      return nullptr;
    }
  }
  return reference;
}

// The rule for a flat schema that has one, or nothing.
std::string_view known_rule(const json::value& flat) {
  if (!flat.is_object()) return {};
  const auto& object = flat.get_object();
  if (object.empty()) return "json-value";
  const auto* type = object.if_contains("type");
  if (object.size() != 1 || type == nullptr || !type->is_string()) return {};
  struct Known {
    std::string_view type;
    std::string_view rule;
  };
  constexpr std::array kKnown = {
      Known{"object", "json-object"},   Known{"array", "json-array"},
      Known{"string", "json-string"},   Known{"number", "json-number"},
      Known{"integer", "json-integer"}, Known{"boolean", "json-boolean"},
      Known{"null", "json-null"},
  };
  for (const auto& one : kKnown) {
    if (*type == json::string_view(one.type.data(), one.type.size())) return one.rule;
  }
  return {};
}

std::string_view last_part(std::string_view reference) {
  return reference.substr(reference.rfind('/') + 1);
}

}  // namespace

Result<std::string> SchemaCompiler::compile() {
  auto name = use(document_.root(), "#", "document");
  if (!name) return name;
  while (!jobs_.empty()) {
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    if (auto written = write(job); !written) return fail(written.error());
    if (auto within = book_.status(); !within) return fail(within.error());
  }
  return name;
}

Result<std::string> SchemaCompiler::use(const json::value& schema, const std::string& pointer,
                                        std::string_view hint) {
  std::string reference;
  if (const auto* target = only_reference(schema)) {
    reference = std::string(target->get_string());
    const auto known = by_reference_.find(reference);
    if (known != by_reference_.end()) return known->second;
    if (reference.find('/') != std::string::npos) hint = last_part(reference);
  }
  auto flat = flattener_.flatten(schema, pointer);
  if (!flat) return fail(flat.error());
  std::string name;
  if (const auto rule = known_rule(*flat); !rule.empty()) {
    name = book_.json(rule);
  } else {
    auto text = json_text(*flat);
    if (auto charged = flattener_.charge(text.size()); !charged) return fail(charged.error());
    const auto known = by_text_.find(text);
    if (known != by_text_.end()) {
      name = known->second;
    } else {
      name = book_.reserve(hint);
      by_text_.emplace(std::move(text), name);
      jobs_.push_back(
          Job{name, std::move(*flat), shown_pointer(reference.empty() ? pointer : reference)});
    }
  }
  if (!reference.empty()) by_reference_.emplace(reference, name);
  return name;
}

Status SchemaCompiler::write(const Job& job) {
  Leaves leaves;
  if (auto collected = collect(job.schema, job.pointer, leaves); !collected) return collected;
  if (leaves.list.empty()) {
    return schema_error(job.pointer, "no value can satisfy this schema");
  }
  std::string ways;
  for (const auto& leaf : leaves.list) {
    const auto one = body(leaf, job.pointer);
    if (!one) return fail(one.error());
    if (leaves.list.size() == 1) {
      ways = *one;
    } else {
      ways += (ways.empty() ? "" : " | ") + book_.share(leaf.type, *one);
    }
  }
  book_.define(job.name, ways);
  return {};
}

}  // namespace berth::worker
