#include "supervisor/store/failure_json.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/store/json_values.h"

namespace berth::store {
namespace {

namespace json = boost::json;

json::array list_value(const std::vector<std::string>& list) {
  json::array array;
  for (const std::string& text : list) array.emplace_back(text_value(text));
  return array;
}

std::vector<std::string> list_at(const json::object& object, std::string_view name) {
  std::vector<std::string> list;
  const json::value* value = object.if_contains(name);
  const json::array* array = value ? value->if_array() : nullptr;
  if (!array) return list;
  for (const json::value& part : *array) {
    if (const json::string* text = part.if_string()) list.emplace_back(text->data(), text->size());
  }
  return list;
}

void put_number(json::object& object, std::string_view name,
                const std::optional<std::uint64_t>& number) {
  if (number) object[name] = *number;
}

json::object exit_value(const core::ExitStatus& exit) {
  json::object object;
  if (const auto* exited = std::get_if<core::Exited>(&exit)) object["code"] = exited->code;
  if (const auto* signalled = std::get_if<core::Signalled>(&exit)) {
    object["signal"] = signalled->signal;
    object["core_dumped"] = signalled->core_dumped;
  }
  return object;
}

std::optional<core::ExitStatus> exit_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  const json::object* exit = value ? value->if_object() : nullptr;
  if (!exit) return std::nullopt;
  if (const auto code = number_at<int>(*exit, "code")) return core::Exited{*code};
  if (const auto signal = number_at<int>(*exit, "signal")) {
    const json::value* dumped = exit->if_contains("core_dumped");
    return core::Signalled{*signal, dumped && dumped->is_bool() && dumped->get_bool()};
  }
  return core::UnknownExit{};
}

json::array memory_value(const std::vector<core::FailureMemory>& memory) {
  json::array array;
  for (const core::FailureMemory& domain : memory) {
    json::object object;
    object["domain"] = text_value(domain.domain);
    put_number(object, "predicted_charge", domain.predicted_charge);
    put_number(object, "free_before", domain.free_before);
    put_number(object, "free_at_failure", domain.free_at_failure);
    put_number(object, "high_water", domain.high_water);
    put_number(object, "failing_allocation", domain.failing_allocation);
    array.emplace_back(std::move(object));
  }
  return array;
}

std::vector<core::FailureMemory> memory_at(const json::object& object, std::string_view name) {
  std::vector<core::FailureMemory> memory;
  const json::value* value = object.if_contains(name);
  const json::array* array = value ? value->if_array() : nullptr;
  if (!array) return memory;
  for (const json::value& part : *array) {
    const json::object* domain = part.if_object();
    if (!domain) continue;
    memory.push_back({text_at(*domain, "domain"),
                      number_at<std::uint64_t>(*domain, "predicted_charge"),
                      number_at<std::uint64_t>(*domain, "free_before"),
                      number_at<std::uint64_t>(*domain, "free_at_failure"),
                      number_at<std::uint64_t>(*domain, "high_water"),
                      number_at<std::uint64_t>(*domain, "failing_allocation")});
  }
  return memory;
}

// The form of each field is the ledger's (core::to_texts), which alone reads and writes it; here
// are only their names.
json::object provenance_value(const core::Provenance& provenance) {
  const core::ProvenanceTexts texts = core::to_texts(provenance);
  json::object object;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts.at(i).empty()) continue;
    const auto field = static_cast<core::ProvenanceField>(i);
    object[core::provenance_field_name(field)] = text_value(texts.at(i));
  }
  return object;
}

core::Provenance provenance_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  const json::object* provenance = value ? value->if_object() : nullptr;
  if (!provenance) return {};
  core::ProvenanceTexts texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto field = static_cast<core::ProvenanceField>(i);
    texts.at(i) = text_at(*provenance, core::provenance_field_name(field));
  }
  return core::provenance_from_texts(texts);
}

}  // namespace

std::string encode_failure(const core::FailureRecord& record) {
  json::object object;
  object["reason"] = text_value(record.reason);
  if (record.exit) object["exit"] = exit_value(*record.exit);
  object["instance"] = record.instance.to_string();
  object["started_ms"] = record.started.time_since_epoch().count();
  object["command"] = list_value(record.command);
  object["environment"] = list_value(record.environment);
  object["log_tail"] = list_value(record.log_tail);
  object["memory"] = memory_value(record.memory);
  object["failing_domain"] = text_value(record.failing_domain);
  object["provenance"] = provenance_value(record.provenance);
  return json::serialize(object);
}

void decode_failure(std::string_view text, core::FailureRecord& record) {
  const std::optional<json::object> object = object_of(text);
  if (!object) return;
  record.reason = text_at(*object, "reason");
  record.exit = exit_at(*object, "exit");
  record.instance = Uuid::parse(text_at(*object, "instance"));
  if (const auto started = number_at<std::int64_t>(*object, "started_ms")) {
    record.started = WallTime(std::chrono::milliseconds(*started));
  }
  record.command = list_at(*object, "command");
  record.environment = list_at(*object, "environment");
  record.log_tail = list_at(*object, "log_tail");
  record.memory = memory_at(*object, "memory");
  record.failing_domain = text_at(*object, "failing_domain");
  record.provenance = provenance_at(*object, "provenance");
}

std::string encode_lift(const core::Lift& lift) {
  json::object object;
  if (lift.moved) {
    object["field"] = core::provenance_field_name(lift.moved->field);
    object["was"] = text_value(lift.moved->was);
    object["now"] = text_value(lift.moved->now);
  }
  if (!lift.detail.empty()) object["detail"] = text_value(lift.detail);
  return json::serialize(object);
}

void decode_lift(std::string_view text, core::Lift& lift) {
  const std::optional<json::object> object = object_of(text);
  if (!object) return;
  if (const auto field = core::provenance_field_from_name(text_at(*object, "field"))) {
    lift.moved = core::MovedField{*field, text_at(*object, "was"), text_at(*object, "now")};
  }
  lift.detail = text_at(*object, "detail");
}

}  // namespace berth::store
