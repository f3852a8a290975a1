#include "supervisor/store/failure_rows.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <string>

#include "supervisor/core/failure.h"
#include "supervisor/store/failure_json.h"

namespace berth::store {
namespace {

std::int64_t to_ms(WallTime time) {
  return time.time_since_epoch().count();
}
WallTime from_ms(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(ms));
}

// The columns that record_of() reads, in its order.
const std::string kSelect =
    "SELECT id, model, class, ended_ms, lifted_ms, lifted_by, lift, record FROM failures ";
constexpr const char* kYoungestFirst = "ended_ms DESC, id DESC ";
// Of what is kept: what stands goes last.
constexpr const char* kKeptFirst = "(lifted_ms IS NULL) DESC, ended_ms DESC, id DESC ";

core::FailureRecord record_of(SQLite::Statement& row) {
  core::FailureRecord record;
  record.id = Uuid::parse(row.getColumn(0).getString());
  record.model = row.getColumn(1).getString();
  record.failure_class = core::failure_class_from_name(row.getColumn(2).getString());
  record.ended = from_ms(row.getColumn(3).getInt64());
  if (!row.getColumn(4).isNull()) {
    core::Lift lift;
    lift.when = from_ms(row.getColumn(4).getInt64());
    // A cause that only a later version knows: a newer decision, whatever it was.
    lift.cause = core::lift_cause_from_name(row.getColumn(5).getString())
                     .value_or(core::LiftCause::kSuperseded);
    decode_lift(row.getColumn(6).getString(), lift);
    record.lifted = std::move(lift);
  }
  decode_failure(row.getColumn(7).getString(), record);
  return record;
}

std::vector<core::FailureRecord> records_of(SQLite::Statement& query) {
  std::vector<core::FailureRecord> found;
  while (query.executeStep()) found.push_back(record_of(query));
  return found;
}

bool is_kept(SQLite::Database& connection, const std::string& id) {
  SQLite::Statement query(connection, "SELECT 1 FROM failures WHERE id = ?");
  query.bind(1, id);
  return query.executeStep();
}

// Whatever stands against the model.
void supersede(SQLite::Database& connection, const std::string& model, WallTime when) {
  SQLite::Statement lift(connection,
                         "UPDATE failures SET lifted_ms = ?, lifted_by = ? "
                         "WHERE model = ? AND lifted_ms IS NULL");
  lift.bind(1, to_ms(when));
  lift.bind(2, std::string(core::lift_cause_name(core::LiftCause::kSuperseded)));
  lift.bind(3, model);
  lift.exec();
}

void insert(SQLite::Database& connection, const core::FailureRecord& record) {
  SQLite::Statement put(connection,
                        "INSERT INTO failures "
                        "(id, model, class, ended_ms, lifted_ms, lifted_by, lift, record) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  put.bind(1, record.id.to_string());
  put.bind(2, record.model);
  put.bind(3, std::string(core::failure_class_name(record.failure_class)));
  put.bind(4, to_ms(record.ended));
  if (record.lifted) {
    put.bind(5, to_ms(record.lifted->when));
    put.bind(6, std::string(core::lift_cause_name(record.lifted->cause)));
    put.bind(7, encode_lift(*record.lifted));
  } else {
    put.bind(5);
    put.bind(6, "");
    put.bind(7, "{}");
  }
  put.bind(8, encode_failure(record));
  put.exec();
}

}  // namespace

void put_failure(SQLite::Database& connection, const core::FailureRecord& record,
                 std::size_t per_model) {
  if (is_kept(connection, record.id.to_string())) return;
  if (!record.lifted) supersede(connection, record.model, record.ended);
  insert(connection, record);
  SQLite::Statement prune(connection,
                          std::string("DELETE FROM failures WHERE id IN (SELECT id FROM failures "
                                      "WHERE model = ? ORDER BY ") +
                              kKeptFirst + "LIMIT -1 OFFSET ?)");
  prune.bind(1, record.model);
  prune.bind(2, static_cast<std::int64_t>(per_model));
  prune.exec();
}

void lift_failure(SQLite::Database& connection, const Uuid& id, const core::Lift& lift) {
  SQLite::Statement update(connection,
                           "UPDATE failures SET lifted_ms = ?, lifted_by = ?, lift = ? "
                           "WHERE id = ? AND lifted_ms IS NULL");
  update.bind(1, to_ms(lift.when));
  update.bind(2, std::string(core::lift_cause_name(lift.cause)));
  update.bind(3, encode_lift(lift));
  update.bind(4, id.to_string());
  update.exec();
}

std::vector<core::FailureRecord> failures(SQLite::Database& connection, const std::string& model,
                                          std::size_t limit) {
  SQLite::Statement query(connection, kSelect + (model.empty() ? "" : "WHERE model = ?2 ") +
                                          "ORDER BY " + kYoungestFirst + "LIMIT ?1");
  query.bind(1, static_cast<std::int64_t>(limit));
  if (!model.empty()) query.bind(2, model);
  return records_of(query);
}

std::vector<core::FailureRecord> standing_failures(SQLite::Database& connection,
                                                   std::size_t limit) {
  SQLite::Statement query(connection, kSelect + "WHERE lifted_ms IS NULL ORDER BY model LIMIT ?");
  query.bind(1, static_cast<std::int64_t>(limit));
  return records_of(query);
}

void prune_failures(SQLite::Database& connection, std::size_t most) {
  SQLite::Statement prune(connection,
                          std::string("DELETE FROM failures WHERE id IN (SELECT id FROM failures "
                                      "ORDER BY ") +
                              kKeptFirst + "LIMIT -1 OFFSET ?)");
  prune.bind(1, static_cast<std::int64_t>(most));
  prune.exec();
}

}  // namespace berth::store
