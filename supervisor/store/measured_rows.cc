#include "supervisor/store/measured_rows.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "supervisor/core/memory/domain.h"
#include "supervisor/store/json_values.h"

namespace berth::store {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostKey = 4096;  // bytes

json::object domain_value(const core::MeasuredDomain& domain) {
  json::object object;
  object["domain"] = text_value(domain.domain);
  object["weights"] = domain.weights;
  object["mapped"] = domain.mapped;
  object["kv"] = domain.kv;
  object["working"] = domain.working;
  if (domain.process) object["process"] = *domain.process;
  if (domain.at_least) object["at_least"] = *domain.at_least;
  return object;
}

std::string encode(const MeasuredRecord& record) {
  json::object object;
  object["loads"] = record.measured.loads;
  json::array domains;
  for (const core::MeasuredDomain& domain : record.measured.domains) {
    domains.emplace_back(domain_value(domain));
  }
  object["domains"] = std::move(domains);
  json::array predicted;
  for (const MeasuredRecord::Predicted& domain : record.predicted) {
    json::object one;
    one["domain"] = text_value(domain.domain);
    one["charge"] = domain.charge;
    one["overhead"] = domain.overhead;
    predicted.emplace_back(std::move(one));
  }
  object["predicted"] = std::move(predicted);
  return json::serialize(object);
}

// Null: there is no such list, or it is longer than there are domains.
const json::array* list_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  const json::array* const list = value ? value->if_array() : nullptr;
  return list && list->size() <= core::kMaxDomains ? list : nullptr;
}

std::optional<core::MeasuredDomain> domain_of(const json::value& value) {
  const json::object* const object = value.if_object();
  if (!object) return std::nullopt;
  core::MeasuredDomain domain;
  domain.domain = text_at(*object, "domain");
  const auto weights = number_at<std::uint64_t>(*object, "weights");
  const auto mapped = number_at<std::uint64_t>(*object, "mapped");
  const auto kv = number_at<std::uint64_t>(*object, "kv");
  const auto working = number_at<std::uint64_t>(*object, "working");
  if (domain.domain.empty() || !weights || !mapped || !kv || !working) return std::nullopt;
  for (const char* const name : {"process", "at_least"}) {
    if (!number_or_none<std::uint64_t>(*object, name)) return std::nullopt;
  }
  domain.weights = *weights;
  domain.mapped = *mapped;
  domain.kv = *kv;
  domain.working = *working;
  domain.process = number_at<std::uint64_t>(*object, "process");
  domain.at_least = number_at<std::uint64_t>(*object, "at_least");
  return domain;
}

// Numbers that are half read would be charged, so that a record is taken whole or not at all.
bool decode(std::string_view text, MeasuredRecord& record) {
  const std::optional<json::object> object = object_of(text);
  if (!object) return false;
  const auto loads = number_at<std::uint32_t>(*object, "loads");
  const json::array* const domains = list_at(*object, "domains");
  const json::array* const predicted = list_at(*object, "predicted");
  if (!loads || !domains || !predicted) return false;
  record.measured.loads = *loads;
  for (const json::value& value : *domains) {
    std::optional<core::MeasuredDomain> domain = domain_of(value);
    if (!domain) return false;
    record.measured.domains.push_back(*std::move(domain));
  }
  for (const json::value& value : *predicted) {
    const json::object* const one = value.if_object();
    if (!one) return false;
    const auto charge = number_at<std::uint64_t>(*one, "charge");
    const auto overhead = number_at<std::uint64_t>(*one, "overhead");
    if (!charge || !overhead) return false;
    record.predicted.push_back({text_at(*one, "domain"), *charge, *overhead});
  }
  return true;
}

}  // namespace

void put_measured(SQLite::Database& connection, const MeasuredRecord& record, std::size_t most) {
  SQLite::Statement put(connection,
                        "INSERT OR REPLACE INTO measured_loads (key, model, changed_ms, record) "
                        "VALUES (?, ?, ?, ?)");
  put.bind(1, record.key);
  put.bind(2, record.model);
  put.bind(3, record.changed.time_since_epoch().count());
  put.bind(4, encode(record));
  put.exec();
  SQLite::Statement prune(connection,
                          "DELETE FROM measured_loads WHERE key IN (SELECT key FROM measured_loads "
                          "ORDER BY changed_ms DESC, key DESC LIMIT -1 OFFSET ?)");
  prune.bind(1, static_cast<std::int64_t>(most));
  prune.exec();
}

MeasuredRecords measured(SQLite::Database& connection, std::size_t limit) {
  SQLite::Statement query(connection,
                          "SELECT key, model, changed_ms, record FROM measured_loads "
                          "ORDER BY changed_ms DESC, key DESC LIMIT ?");
  query.bind(1, static_cast<std::int64_t>(limit));
  MeasuredRecords found;
  while (query.executeStep()) {
    MeasuredRecord record;
    record.key = query.getColumn(0).getString();
    record.model = query.getColumn(1).getString();
    record.changed = WallTime(std::chrono::milliseconds(query.getColumn(2).getInt64()));
    const bool usable = !record.key.empty() && record.key.size() <= kMostKey;
    if (usable && decode(query.getColumn(3).getString(), record)) {
      found.records.push_back(std::move(record));
    } else {
      ++found.unreadable;
    }
  }
  return found;
}

}  // namespace berth::store
