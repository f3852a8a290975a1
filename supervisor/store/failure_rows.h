#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/uuid.h"
#include "supervisor/core/ledger/failure_record.h"

namespace SQLite {
class Database;
}  // namespace SQLite

namespace berth::store {

// The table of failures. Within the caller's transaction; all throw SQLite::Exception.

// As Store::put_failure, and keeps `per_model` of the model's records: the one that stands and the
// youngest.
void put_failure(SQLite::Database& connection, const core::FailureRecord& record,
                 std::size_t per_model);
void lift_failure(SQLite::Database& connection, const Uuid& id, const core::Lift& lift);
// Newest first; `model` empty: of all.
std::vector<core::FailureRecord> failures(SQLite::Database& connection, const std::string& model,
                                          std::size_t limit);
// By model.
std::vector<core::FailureRecord> standing_failures(SQLite::Database& connection, std::size_t limit);
// Keeps `most` of all: those that stand and the youngest.
void prune_failures(SQLite::Database& connection, std::size_t most);

}  // namespace berth::store
