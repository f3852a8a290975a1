#include "supervisor/store/database.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "common/fd.h"
#include "common/wall_time.h"
#include "supervisor/store/event_fields.h"
#include "supervisor/store/failure_rows.h"
#include "supervisor/store/measured_rows.h"
#include "supervisor/store/memory_copy.h"
#include "supervisor/store/migrations.h"

namespace berth::store {
namespace {

constexpr int kBusyMs = 2000;
constexpr std::size_t kMostRows = 10'000;
constexpr std::int64_t kMostLoads = 20'000;
constexpr std::size_t kMostFailures = 20'000;
constexpr std::size_t kCorruptKept = 3;

// SQLite's integers are signed; ours of this size are byte counts and clock ticks.
std::int64_t to_sqlite(std::uint64_t value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kMost));
}
std::uint64_t from_sqlite(std::int64_t value) {
  return value < 0 ? 0 : static_cast<std::uint64_t>(value);
}
std::int64_t to_ms(WallTime time) {
  return time.time_since_epoch().count();
}
WallTime from_ms(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(ms));
}

std::uint64_t last_sequence_of(SQLite::Database& connection) {
  return from_sqlite(
      connection.execAndGet("SELECT coalesce(max(sequence), 0) FROM events").getInt64());
}

bool is_damage(int code) {
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

// Whether one of the files that SQLite makes beside the one at `path` cannot be made for want of
// room. SQLite itself only says that it cannot be opened, and its last errno is of another try.
bool takes_no_file(const std::string& path) {
  return std::ranges::any_of(std::array{"-wal", "-shm"}, [&path](const char* end) {
    const UniqueFd file(
        ::open((path + end).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    return !file && (errno == ENOSPC || errno == EDQUOT);
  });
}

// The disk takes nothing; that may pass. SQLite calls most of it an I/O error, as where a quota or
// a limit of files' sizes is reached.
bool is_full(int code, const std::string& path) {
  if (code == SQLITE_CANTOPEN) return takes_no_file(path);
  return code == SQLITE_FULL || code == SQLITE_IOERR;
}

Reason reason_of(int code) {
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
      return Reason::kStoreBusy;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
      return Reason::kInternal;
    default:
      return Reason::kStoreUnavailable;
  }
}

Error to_error(const std::string& path, const SQLite::Exception& exception) {
  return {reason_of(exception.getErrorCode()), path + ": " + exception.what() + "."};
}

void bind_optional(SQLite::Statement& statement, int index, const std::optional<WallTime>& time) {
  if (time) {
    statement.bind(index, to_ms(*time));
  } else {
    statement.bind(index);
  }
}

std::optional<WallTime> optional_time(const SQLite::Column& column) {
  if (column.isNull()) return std::nullopt;
  return from_ms(column.getInt64());
}

// Whether the file was never made, or not further than an attempt on a full disk comes: without a
// table.
bool is_unused(const std::string& path) {
  constexpr std::uintmax_t kFirstPage = 4096;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return error == std::errc::no_such_file_or_directory;
  const std::uintmax_t log = std::filesystem::file_size(path + "-wal", error);
  return size <= kFirstPage && (error ? size == 0 : log == 0);
}

Status make_private_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file) return {};
  return fail(Reason::kStoreUnavailable, "The database " + path + " cannot be opened: " +
                                             std::generic_category().message(errno) + ".");
}

// Gives the new name.
Result<std::string> move_aside(const std::string& path, WallTime now) {
  std::string stamp;
  for (const char c : format_utc(now)) {
    if (c != '-' && c != ':' && c != '.') stamp += c;
  }
  const std::string aside = path + ".corrupt-" + stamp;
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  if (error) {
    return fail(
        Reason::kStoreUnavailable,
        "The database " + path + " is damaged and cannot be moved aside: " + error.message() + ".");
  }
  // The log belongs to the file: with it sqlite3's .recover finds more.
  std::filesystem::rename(path + "-wal", aside + "-wal", error);
  std::filesystem::remove(path + "-shm", error);

  std::vector<std::string> all;
  const std::string front = path + ".corrupt-";
  const auto directory = std::filesystem::path(path).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().string();
    if (name.starts_with(front) && !name.ends_with("-wal")) all.push_back(name);
  }
  std::ranges::sort(all);
  for (std::size_t i = 0; i + kCorruptKept < all.size(); ++i) {
    std::filesystem::remove(all[i], error);
    std::filesystem::remove(all[i] + "-wal", error);
  }
  return aside;
}

// As encode_fields() writes it.
std::string member(std::string_view name, const std::string& value) {
  const std::string object = encode_fields({{name, value}});
  return object.substr(1, object.size() - 2);
}

}  // namespace

class Database::Impl {
 public:
  Impl(std::string path, SQLite::Database connection)
      : path_(std::move(path)), connection_(std::move(connection)) {}

  // Calls `work`, which may throw what SQLiteCpp throws.
  template <typename Work>
  auto guard(Work work) -> Result<std::invoke_result_t<Work, SQLite::Database&>> {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Work, SQLite::Database&>>) {
        work(connection_);
        return {};
      } else {
        return work(connection_);
      }
    } catch (const SQLite::Exception& exception) {
      if (is_damage(exception.getErrorCode())) damaged_ = true;
      return fail(to_error(path_, exception));
    }
  }

  [[nodiscard]] bool damaged() const { return damaged_; }
  SQLite::Database& connection() { return connection_; }

  // Of the file as it was found; empty where it is sound. Throws.
  static std::string damage_of(SQLite::Database& connection) {
    SQLite::Statement closed(connection, "SELECT value FROM meta WHERE key = 'closed_well'");
    if (closed.executeStep() && closed.getColumn(0).getString() == "1") return {};
    const std::string found = connection.execAndGet("PRAGMA quick_check(1)").getString();
    return found == "ok" ? std::string() : found;
  }

  static void say_closed_well(SQLite::Database& connection, bool well) {
    SQLite::Statement mark(connection, "INSERT OR REPLACE INTO meta VALUES ('closed_well', ?)");
    mark.bind(1, well ? "1" : "0");
    mark.exec();
  }

 private:
  std::string path_;
  SQLite::Database connection_;
  bool damaged_ = false;
};

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;

namespace {

// Loads of a server that was killed: nobody knows when they ended. One that was ready is no failure
// either.
void end_open_loads(SQLite::Database& connection) {
  SQLite::Statement update(connection,
                           "UPDATE loads SET outcome = CASE outcome WHEN 'loading' THEN "
                           "'interrupted' ELSE 'stopped' END, "
                           "reason = 'the server ended' WHERE outcome IN ('loading', 'ready')");
  update.exec();
}

struct Attempt {
  std::optional<SQLite::Database> connection;
  std::string damage;  // not empty: the file must be moved aside
  std::string full;    // not empty: the disk does not take what opening it writes
};

// Throws.
Status prepare(SQLite::Database& connection, const std::string& path) {
  connection.exec("PRAGMA journal_mode = WAL");
  connection.exec("PRAGMA synchronous = NORMAL");
  // Pages of 4 KiB that are carried over into the file as soon as there are so many: SQLite's 1000
  // would take four times what all else does, and with that a small disk.
  connection.exec("PRAGMA wal_autocheckpoint = 64");
  connection.exec("PRAGMA journal_size_limit = 524288");
  connection.exec("PRAGMA trusted_schema = OFF");
  return migrate(connection, path);
}

Result<Attempt> attempt_open(const std::string& path) {
  Attempt attempt;
  if (auto made = make_private_file(path); !made) {
    if (errno != ENOSPC && errno != EDQUOT) return fail(std::move(made).error());
    attempt.full = made.error().message;
    return attempt;
  }
  try {
    SQLite::Database connection(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMs);
    if (auto ready = prepare(connection, path); !ready) return fail(std::move(ready).error());
    attempt.connection.emplace(std::move(connection));
  } catch (const SQLite::Exception& exception) {
    if (is_damage(exception.getErrorCode())) {
      attempt.damage = exception.what();
    } else if (is_full(exception.getErrorCode(), path)) {
      attempt.full = to_error(path, exception).message;
    } else {
      return fail(to_error(path, exception));
    }
  }
  return attempt;
}

// What the file holds, or nothing where it was never made, with the newest schema. Where the file
// cannot be read either, it was no full disk.
Result<Attempt> attempt_in_memory(const std::string& path) {
  Attempt attempt;
  try {
    SQLite::Database connection =
        is_unused(path)
            ? SQLite::Database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMs)
            : copy_in_memory(path);
    if (auto ready = prepare(connection, path); !ready) return fail(std::move(ready).error());
    attempt.connection.emplace(std::move(connection));
  } catch (const SQLite::Exception& exception) {
    if (!is_damage(exception.getErrorCode())) return fail(to_error(path, exception));
    attempt.damage = exception.what();
  }
  return attempt;
}

}  // namespace

Result<Database::Opened> Database::open(const std::string& path, WallTime now, IfFull if_full) {
  Opened opened;
  // A second round only after a damaged file was moved away.
  for (int round = 0; round < 2; ++round) {
    auto attempt = attempt_open(path);
    opened.without_file = attempt ? attempt->full : std::string();
    if (!opened.without_file.empty()) {
      if (if_full == IfFull::kFail) return fail(Reason::kStoreUnavailable, opened.without_file);
      attempt = attempt_in_memory(path);
    }
    if (!attempt) return fail(std::move(attempt).error());
    if (attempt->connection) {
      auto impl = std::make_unique<Impl>(path, std::move(*attempt->connection));
      attempt->connection.reset();
      auto damage = impl->guard(&Impl::damage_of);
      if (!damage && !impl->damaged()) return fail(std::move(damage).error());
      attempt->damage = damage ? *damage : damage.error().message;
      if (attempt->damage.empty()) {
        // A full disk must not keep the server from starting: then this file is only checked once
        // more than needed.
        static_cast<void>(impl->guard(
            [](SQLite::Database& connection) { Impl::say_closed_well(connection, false); }));
        // The same of rows that nobody will end any more: then `berth why` shows them as they are.
        static_cast<void>(impl->guard(end_open_loads));
        opened.database.reset(new Database(std::move(impl)));
        return opened;
      }
    }
    if (round > 0) break;
    opened.damage = attempt->damage;
    auto aside = move_aside(path, now);
    if (!aside) return fail(std::move(aside).error());
    opened.moved_aside = std::move(*aside);
  }
  return fail(Reason::kStoreUnavailable, "The new database " + path + " is damaged at once.");
}

Status Database::begin() {
  return impl_->guard([](SQLite::Database& connection) { connection.exec("BEGIN IMMEDIATE"); });
}

Status Database::commit() {
  return impl_->guard([](SQLite::Database& connection) { connection.exec("COMMIT"); });
}

void Database::rollback() {
  // SQLite has rolled back by itself after some errors; then this one fails and that is well.
  static_cast<void>(
      impl_->guard([](SQLite::Database& connection) { connection.exec("ROLLBACK"); }));
}

Status Database::put_load(const LoadRecord& record, std::size_t per_model) {
  return impl_->guard([&](SQLite::Database& connection) {
    SQLite::Statement put(
        connection,
        "INSERT OR REPLACE INTO loads (id, model, started_ms, ready_ms, ended_ms, outcome, "
        "failure_class, reason, exit, load_ms, weights_bytes, kv_bytes, working_bytes, "
        "provenance) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    int at = 0;
    put.bind(++at, record.id);
    put.bind(++at, record.model);
    put.bind(++at, to_ms(record.started));
    bind_optional(put, ++at, record.ready);
    bind_optional(put, ++at, record.ended);
    put.bind(++at, record.outcome);
    put.bind(++at, record.failure_class);
    put.bind(++at, record.reason);
    put.bind(++at, record.exit);
    put.bind(++at, record.load_ms);
    put.bind(++at, to_sqlite(record.weights_bytes));
    put.bind(++at, to_sqlite(record.kv_bytes));
    put.bind(++at, to_sqlite(record.working_bytes));
    put.bind(++at, record.provenance);
    put.exec();
    SQLite::Statement prune(connection,
                            "DELETE FROM loads WHERE id IN (SELECT id FROM loads WHERE model = ? "
                            "ORDER BY started_ms DESC, id DESC LIMIT -1 OFFSET ?)");
    prune.bind(1, record.model);
    prune.bind(2, to_sqlite(per_model));
    prune.exec();
  });
}

Result<std::vector<LoadRecord>> Database::loads(const std::string& model, std::size_t limit) {
  return impl_->guard([&](SQLite::Database& connection) {
    SQLite::Statement query(
        connection,
        "SELECT id, model, started_ms, ready_ms, ended_ms, outcome, failure_class, reason, exit, "
        "load_ms, weights_bytes, kv_bytes, working_bytes, provenance FROM loads WHERE model = ? "
        "ORDER BY started_ms DESC, id DESC LIMIT ?");
    query.bind(1, model);
    query.bind(2, to_sqlite(std::min(limit, kMostRows)));
    std::vector<LoadRecord> found;
    while (query.executeStep()) {
      int at = -1;
      LoadRecord record;
      record.id = query.getColumn(++at).getString();
      record.model = query.getColumn(++at).getString();
      record.started = from_ms(query.getColumn(++at).getInt64());
      record.ready = optional_time(query.getColumn(++at));
      record.ended = optional_time(query.getColumn(++at));
      record.outcome = query.getColumn(++at).getString();
      record.failure_class = query.getColumn(++at).getString();
      record.reason = query.getColumn(++at).getString();
      record.exit = query.getColumn(++at).getString();
      record.load_ms = query.getColumn(++at).getInt64();
      record.weights_bytes = from_sqlite(query.getColumn(++at).getInt64());
      record.kv_bytes = from_sqlite(query.getColumn(++at).getInt64());
      record.working_bytes = from_sqlite(query.getColumn(++at).getInt64());
      record.provenance = query.getColumn(++at).getString();
      found.push_back(std::move(record));
    }
    return found;
  });
}

Result<std::vector<ProvenLoad>> Database::proven_loads() {
  return impl_->guard([](SQLite::Database& connection) {
    // Of a group SQLite takes the other columns from the row that has the maximum.
    SQLite::Statement query(connection,
                            "SELECT model, provenance, max(started_ms) FROM loads WHERE ready_ms "
                            "IS NOT NULL AND provenance <> '' GROUP BY model LIMIT ?");
    query.bind(1, to_sqlite(kMostRows));
    std::vector<ProvenLoad> found;
    while (query.executeStep()) {
      found.push_back({query.getColumn(0).getString(), query.getColumn(1).getString()});
    }
    return found;
  });
}

Status Database::put_failure(const core::FailureRecord& record, std::size_t per_model) {
  return impl_->guard(
      [&](SQLite::Database& connection) { store::put_failure(connection, record, per_model); });
}

Status Database::lift_failure(const Uuid& id, const core::Lift& lift) {
  return impl_->guard(
      [&](SQLite::Database& connection) { store::lift_failure(connection, id, lift); });
}

Result<std::vector<core::FailureRecord>> Database::failures(const std::string& model,
                                                            std::size_t limit) {
  return impl_->guard([&](SQLite::Database& connection) {
    return store::failures(connection, model, std::min(limit, kMostRows));
  });
}

Result<std::vector<core::FailureRecord>> Database::standing_failures() {
  return impl_->guard(
      [](SQLite::Database& connection) { return store::standing_failures(connection, kMostRows); });
}

Status Database::put_measured(const MeasuredRecord& record, std::size_t most) {
  return impl_->guard(
      [&](SQLite::Database& connection) { store::put_measured(connection, record, most); });
}

Result<MeasuredRecords> Database::measured() {
  return impl_->guard(
      [](SQLite::Database& connection) { return store::measured(connection, kMostRows); });
}

Status Database::put_process(const ProcessRecord& record) {
  return impl_->guard([&](SQLite::Database& connection) {
    SQLite::Statement put(connection,
                          "INSERT OR REPLACE INTO processes (instance, model, pid, start_ticks, "
                          "boot_id) VALUES (?, ?, ?, ?, ?)");
    put.bind(1, record.instance);
    put.bind(2, record.model);
    put.bind(3, record.pid);
    put.bind(4, to_sqlite(record.start_ticks));
    put.bind(5, record.boot_id);
    put.exec();
  });
}

Status Database::remove_process(const std::string& instance) {
  return impl_->guard([&](SQLite::Database& connection) {
    SQLite::Statement remove(connection, "DELETE FROM processes WHERE instance = ?");
    remove.bind(1, instance);
    remove.exec();
  });
}

Result<std::vector<ProcessRecord>> Database::processes() {
  return impl_->guard([](SQLite::Database& connection) {
    SQLite::Statement query(connection,
                            "SELECT instance, model, pid, start_ticks, boot_id FROM processes "
                            "ORDER BY instance LIMIT ?");
    query.bind(1, to_sqlite(kMostRows));
    std::vector<ProcessRecord> found;
    while (query.executeStep()) {
      ProcessRecord record;
      record.instance = query.getColumn(0).getString();
      record.model = query.getColumn(1).getString();
      record.pid = query.getColumn(2).getInt64();
      record.start_ticks = from_sqlite(query.getColumn(3).getInt64());
      record.boot_id = query.getColumn(4).getString();
      found.push_back(std::move(record));
    }
    return found;
  });
}

Status Database::put_event(const Event& event) {
  return impl_->guard([&](SQLite::Database& connection) {
    SQLite::Statement put(connection,
                          "INSERT OR IGNORE INTO events (sequence, time_ms, name, level, fields) "
                          "VALUES (?, ?, ?, ?, ?)");
    put.bind(1, to_sqlite(event.sequence));
    put.bind(2, to_ms(event.time));
    put.bind(3, std::string(event.name));
    put.bind(4, static_cast<int>(event.level));
    put.bind(5, encode_fields(event.fields));
    put.exec();
  });
}

Result<EventPage> Database::events(const EventFilter& filter, std::size_t limit) {
  return impl_->guard([&](SQLite::Database& connection) {
    SQLite::Statement query(
        connection,
        "SELECT sequence, time_ms, name, level, fields FROM events "
        "WHERE time_ms >= ?1 AND substr(name, 1, length(?2)) = ?2 "
        "AND (?3 = '' OR instr(fields, ?3) > 0) AND sequence > ?5 "
        "AND (?6 = '' OR CASE WHEN substr(name, 1, 8) = 'request.' "
        "THEN instr(fields, ?6) > 0 ELSE instr(?7, ',' || name || ',') > 0 END) "
        "ORDER BY sequence " +
            std::string(filter.oldest_first ? "ASC" : "DESC") + " LIMIT ?4");
    query.bind(1, to_ms(filter.since));
    query.bind(2, filter.prefix);
    // An id has nothing that JSON writes otherwise.
    query.bind(3, filter.request.empty() ? "" : "\"request\":\"" + filter.request + '"');
    query.bind(4, to_sqlite(std::min(limit, kMostRows)));
    query.bind(5, to_sqlite(filter.after));
    query.bind(6, filter.tenant.empty() ? "" : member("tenant", filter.tenant));
    std::string names = ",";
    for (const std::string& name : filter.names) names += name + ',';
    query.bind(7, names);
    EventPage page;
    std::vector<StoredEvent>& found = page.events;
    while (query.executeStep()) {
      StoredEvent event;
      event.sequence = from_sqlite(query.getColumn(0).getInt64());
      event.time = from_ms(query.getColumn(1).getInt64());
      event.name = query.getColumn(2).getString();
      const int level = std::clamp(query.getColumn(3).getInt(), static_cast<int>(Level::kDebug),
                                   static_cast<int>(Level::kError));
      event.level = static_cast<Level>(level);
      event.fields = decode_fields(query.getColumn(4).getString());
      found.push_back(std::move(event));
    }
    if (!filter.oldest_first) std::ranges::reverse(found);
    SQLite::Statement oldest(connection,
                             "SELECT sequence, time_ms FROM events ORDER BY sequence LIMIT 1");
    if (oldest.executeStep()) {
      page.oldest = from_sqlite(oldest.getColumn(0).getInt64());
      page.oldest_time = from_ms(oldest.getColumn(1).getInt64());
    }
    page.youngest = last_sequence_of(connection);
    return page;
  });
}

Result<std::uint64_t> Database::last_sequence() {
  return impl_->guard(last_sequence_of);
}

Status Database::prune(std::size_t kept, WallTime oldest) {
  return impl_->guard([&](SQLite::Database& connection) {
    SQLite::Statement surplus(connection,
                              "DELETE FROM events WHERE sequence < (SELECT sequence FROM events "
                              "ORDER BY sequence DESC LIMIT 1 OFFSET ?)");
    surplus.bind(1, to_sqlite(std::max<std::size_t>(kept, 1) - 1));
    surplus.exec();
    SQLite::Statement old(connection,
                          "DELETE FROM events WHERE time_ms < ? AND "
                          "sequence < (SELECT max(sequence) FROM events)");
    old.bind(1, to_ms(oldest));
    old.exec();
    // Loads of models that are long gone from the catalogue.
    SQLite::Statement loads(connection,
                            "DELETE FROM loads WHERE started_ms < (SELECT started_ms FROM loads "
                            "ORDER BY started_ms DESC LIMIT 1 OFFSET ?)");
    loads.bind(1, kMostLoads - 1);
    loads.exec();
    prune_failures(connection, kMostFailures);
  });
}

void Database::close_well() {
  if (impl_->damaged()) return;
  // Fails on a full disk; then the next start checks the file.
  static_cast<void>(
      impl_->guard([](SQLite::Database& connection) { Impl::say_closed_well(connection, true); }));
}

void Database::interrupt() {
  ::sqlite3_interrupt(impl_->connection().getHandle());
}

}  // namespace berth::store
