#include "supervisor/store/migrations.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>

#include <array>
#include <string>

namespace berth::store {
namespace {

// Step N is the entry N - 1. Released steps never change; new ones are added at the end. Times are
// Unix milliseconds.
constexpr std::array kSteps = {
    R"sql(
      CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

      CREATE TABLE loads (
        id TEXT PRIMARY KEY,
        model TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        ready_ms INTEGER,
        ended_ms INTEGER,
        outcome TEXT NOT NULL,
        failure_class TEXT NOT NULL,
        reason TEXT NOT NULL,
        exit TEXT NOT NULL,
        load_ms INTEGER NOT NULL,
        weights_bytes INTEGER NOT NULL,
        kv_bytes INTEGER NOT NULL,
        working_bytes INTEGER NOT NULL
      ) WITHOUT ROWID;
      CREATE INDEX loads_of_model ON loads (model, started_ms);
      CREATE INDEX loads_by_start ON loads (started_ms);

      CREATE TABLE processes (
        instance TEXT PRIMARY KEY,
        model TEXT NOT NULL,
        pid INTEGER NOT NULL,
        start_ticks INTEGER NOT NULL,
        boot_id TEXT NOT NULL
      ) WITHOUT ROWID;

      CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        time_ms INTEGER NOT NULL,
        name TEXT NOT NULL,
        level INTEGER NOT NULL,
        fields TEXT NOT NULL
      );
      CREATE INDEX events_by_time ON events (time_ms);
    )sql",
    // Failures of loads (L18): what is looked for has a column, the rest is JSON. At most one of a
    // model stands.
    R"sql(
      CREATE TABLE failures (
        id TEXT PRIMARY KEY,
        model TEXT NOT NULL,
        class TEXT NOT NULL,
        ended_ms INTEGER NOT NULL,
        lifted_ms INTEGER,
        lifted_by TEXT NOT NULL,
        lift TEXT NOT NULL,
        record TEXT NOT NULL
      );
      CREATE INDEX failures_of_model ON failures (model, ended_ms);
      CREATE INDEX failures_by_end ON failures (ended_ms);
      CREATE UNIQUE INDEX failures_standing ON failures (model) WHERE lifted_ms IS NULL;
    )sql",
    R"sql(
      ALTER TABLE loads ADD COLUMN provenance TEXT NOT NULL DEFAULT '';
    )sql",
    // What loads took (M5), as JSON, so that an operator can read it.
    R"sql(
      CREATE TABLE measured_loads (
        key TEXT PRIMARY KEY,
        model TEXT NOT NULL,
        changed_ms INTEGER NOT NULL,
        record TEXT NOT NULL
      ) WITHOUT ROWID;
      CREATE INDEX measured_by_change ON measured_loads (changed_ms);
    )sql",
};

}  // namespace

int newest_schema() {
  return static_cast<int>(kSteps.size());
}

Status migrate(SQLite::Database& database, const std::string& path) {
  SQLite::Transaction transaction(database);
  database.exec(
      "CREATE TABLE IF NOT EXISTS schema_migrations ("
      "version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)");
  const int present =
      database.execAndGet("SELECT coalesce(max(version), 0) FROM schema_migrations").getInt();
  if (present > newest_schema()) {
    return fail(Reason::kConflict,
                "The database " + path + " has schema " + std::to_string(present) +
                    ", but this berth knows only schemas up to " + std::to_string(newest_schema()) +
                    ". Use the newer berth that made it, or another server.state_dir.");
  }
  for (int step = present; step < newest_schema(); ++step) {
    database.exec(kSteps.at(static_cast<std::size_t>(step)));
    SQLite::Statement record(database, "INSERT INTO schema_migrations VALUES (?, datetime('now'))");
    record.bind(1, step + 1);
    record.exec();
  }
  transaction.commit();
  return {};
}

}  // namespace berth::store
