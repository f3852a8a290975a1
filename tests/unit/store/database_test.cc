#include "supervisor/store/database.h"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "supervisor/store/migrations.h"
#include "tests/unit/process/temp_dir.h"
#include "tests/unit/store/records.h"

namespace berth::store {
namespace {

using testing::append;
using testing::at_ms;
using ::testing::HasSubstr;
using testing::load_record;
using testing::numbered_event;
using testing::slurp;
using testing::TempDir;

class DatabaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<Database> open() {
    auto opened = Database::open(path_, at_ms(1'790'000'000'000));
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return nullptr;
    }
    moved_aside_ = opened->moved_aside;
    return std::move(opened->database);
  }

  TempDir dir_;
  std::string path_ = dir_.file("state.db");
  std::string moved_aside_;
};

TEST_F(DatabaseTest, FileIsPrivate) {
  const auto database = open();
  ASSERT_TRUE(database->put_process({"i", "m", 1, 2, "b"}));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat info {};
    ASSERT_EQ(::stat((path_ + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777U, 0600U) << suffix;
  }
}

TEST_F(DatabaseTest, LoadsComeBackNewestFirstWithEveryField) {
  const auto database = open();
  LoadRecord full = load_record("b", "m", 2000);
  full.ready = at_ms(2500);
  full.ended = at_ms(3000);
  full.outcome = "died";
  full.failure_class = "crash";
  full.reason = "it's \"gone\" \xF0\x9F\x99\x82";
  full.exit = "SIGSEGV";
  full.load_ms = 500;
  full.weights_bytes = 1;
  full.kv_bytes = UINT64_MAX;  // more than SQLite holds: the most that it does
  full.working_bytes = 3;
  ASSERT_TRUE(database->put_load(load_record("a", "m", 1000), 200));
  ASSERT_TRUE(database->put_load(full, 200));
  ASSERT_TRUE(database->put_load(load_record("c", "other", 3000), 200));
  const auto loads = database->loads("m", 10);
  ASSERT_TRUE(loads);
  ASSERT_EQ(loads->size(), 2U);
  const LoadRecord& back = loads->front();
  EXPECT_EQ(back.id, "b");
  EXPECT_EQ(back.ready, full.ready);
  EXPECT_EQ(back.ended, full.ended);
  EXPECT_EQ(back.outcome, "died");
  EXPECT_EQ(back.failure_class, "crash");
  EXPECT_EQ(back.reason, full.reason);
  EXPECT_EQ(back.exit, "SIGSEGV");
  EXPECT_EQ(back.load_ms, 500);
  EXPECT_EQ(back.weights_bytes, 1U);
  EXPECT_EQ(back.kv_bytes, static_cast<std::uint64_t>(INT64_MAX));
  EXPECT_EQ(back.working_bytes, 3U);
  EXPECT_FALSE(loads->back().ready);
  EXPECT_EQ(database->loads("m", 1)->size(), 1U);
  EXPECT_TRUE(database->loads("'; DROP TABLE loads; --", 1)->empty());
}

// Nobody else has the file: whoever wrote them was killed.
TEST_F(DatabaseTest, L20_OpenLoadsOfAnEarlierRunAreInterrupted) {
  {
    const auto database = open();
    ASSERT_TRUE(database->put_load(load_record("a", "m", 1000), 9));
    LoadRecord ready = load_record("b", "m", 2000);
    ready.outcome = "ready";
    ready.ready = at_ms(2500);
    ASSERT_TRUE(database->put_load(ready, 9));
    LoadRecord failed = load_record("c", "m", 3000);
    failed.outcome = "failed";
    failed.reason = "it broke";
    ASSERT_TRUE(database->put_load(failed, 9));
    EXPECT_EQ(database->loads("m", 9)->back().outcome, "loading");
  }
  const auto loads = open()->loads("m", 9);
  ASSERT_TRUE(loads);
  ASSERT_EQ(loads->size(), 3U);
  EXPECT_EQ(loads->at(0).outcome, "failed");
  EXPECT_EQ(loads->at(0).reason, "it broke");
  EXPECT_EQ(loads->at(1).outcome, "stopped");
  EXPECT_EQ(loads->at(1).ready, at_ms(2500));
  EXPECT_EQ(loads->at(2).outcome, "interrupted");
  EXPECT_EQ(loads->at(2).reason, "the server ended");
}

TEST_F(DatabaseTest, PutLoadReplacesById) {
  const auto database = open();
  LoadRecord record = load_record("a", "m", 1000);
  ASSERT_TRUE(database->put_load(record, 200));
  record.outcome = "ready";
  ASSERT_TRUE(database->put_load(record, 200));
  const auto loads = database->loads("m", 10);
  ASSERT_EQ(loads->size(), 1U);
  EXPECT_EQ(loads->front().outcome, "ready");
}

TEST_F(DatabaseTest, L18_HistoryIsBoundedPerModel) {
  const auto database = open();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(database->put_load(load_record(std::to_string(i), "m", i), 20));
  }
  ASSERT_TRUE(database->put_load(load_record("x", "other", 0), 20));
  const auto loads = database->loads("m", 100);
  ASSERT_EQ(loads->size(), 20U);
  EXPECT_EQ(loads->back().id, "10");
  EXPECT_EQ(database->loads("other", 100)->size(), 1U);
}

TEST_F(DatabaseTest, ProcessesComeAndGo) {
  const auto database = open();
  ASSERT_TRUE(database->put_process({"i1", "m", 77, 123456, "boot"}));
  ASSERT_TRUE(database->put_process({"i2", "m", 78, 123457, "boot"}));
  ASSERT_TRUE(database->remove_process("i1"));
  ASSERT_TRUE(database->remove_process("never there"));
  const auto processes = database->processes();
  ASSERT_EQ(processes->size(), 1U);
  EXPECT_EQ(processes->front().instance, "i2");
  EXPECT_EQ(processes->front().pid, 78);
  EXPECT_EQ(processes->front().start_ticks, 123457U);
  EXPECT_EQ(processes->front().boot_id, "boot");
}

TEST_F(DatabaseTest, EventsSinceGivesTheYoungestOldestFirst) {
  const auto database = open();
  EXPECT_EQ(*database->last_sequence(), 0U);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    const auto name = i % 2 == 0 ? "load.ready" : "request.finished";
    ASSERT_TRUE(database->put_event(numbered_event(i, static_cast<std::int64_t>(i) * 100, name)));
  }
  EXPECT_EQ(*database->last_sequence(), 10U);
  ASSERT_TRUE(database->put_event(numbered_event(10, 9999, "other")));  // kept already

  const auto all = database->events({at_ms(0), ""}, 100);
  ASSERT_EQ(all->events.size(), 10U);
  EXPECT_EQ(all->events.front().sequence, 1U);
  EXPECT_EQ(all->events.back().name, "load.ready");
  EXPECT_EQ(all->events.back().fields.size(), 2U);
  EXPECT_EQ(all->events.back().level, Level::kInfo);

  const auto loads = database->events({at_ms(300), "load."}, 2);
  ASSERT_EQ(loads->events.size(), 2U);
  EXPECT_EQ(loads->events.front().sequence, 8U);
  EXPECT_EQ(loads->events.back().sequence, 10U);
  EXPECT_TRUE(database->events({at_ms(0), "load%"}, 100)->events.empty());
  EXPECT_TRUE(database->events({at_ms(1001), ""}, 100)->events.empty());
}

TEST_F(DatabaseTest, EventsOfARequestAreFoundBehindAnyNumberOfOthers) {
  const auto database = open();
  for (std::uint64_t i = 1; i <= 300; ++i) {
    Event event = numbered_event(i, 1, "request.refused");
    // Whose text looks like the field is not meant.
    event.fields = {{"request", "r-" + std::to_string(i)},
                    {"message", std::string(R"("request":"r-1")")}};
    ASSERT_TRUE(database->put_event(event));
  }
  const auto found = database->events({at_ms(0), "request.", "r-1"}, 10);
  ASSERT_EQ(found->events.size(), 1U);
  EXPECT_EQ(found->events.front().sequence, 1U);
  EXPECT_TRUE(database->events({at_ms(0), "load.", "r-1"}, 10)->events.empty());
}

TEST_F(DatabaseTest, WhatATenantSeesIsNotCutByWhatOthersDid) {
  const auto database = open();
  for (std::uint64_t i = 1; i <= 300; ++i) {
    Event event = numbered_event(i, 1, i == 150 ? "load.ready" : "request.refused");
    const bool mine = i == 1 || i == 2;
    event.fields = {{"tenant", mine ? std::string("key:a\"b") : std::string("uid:1")}};
    ASSERT_TRUE(database->put_event(event));
  }
  ASSERT_TRUE(database->put_event(numbered_event(301, 1, "server.stopping")));
  store::EventFilter filter;
  filter.tenant = "key:a\"b";
  filter.names = {"load.started", "load.ready"};
  const auto found = database->events(filter, 10);
  ASSERT_EQ(found->events.size(), 3U);
  EXPECT_EQ(found->events.at(0).sequence, 1U);
  EXPECT_EQ(found->events.at(2).name, "load.ready");
  filter.after = 1;
  EXPECT_EQ(database->events(filter, 10)->events.size(), 2U);
}

TEST_F(DatabaseTest, EventsCanBeReadFromTheOldestOnInPages) {
  const auto database = open();
  for (std::uint64_t i = 5; i <= 30; ++i) {
    ASSERT_TRUE(database->put_event(numbered_event(i, static_cast<std::int64_t>(i))));
  }
  store::EventFilter filter;
  filter.oldest_first = true;
  std::vector<std::uint64_t> numbers;
  for (auto page = database->events(filter, 10); !page->events.empty();
       page = database->events(filter, 10)) {
    EXPECT_EQ(page->oldest, 5U);
    EXPECT_EQ(page->oldest_time, at_ms(5));
    EXPECT_EQ(page->youngest, 30U);
    for (const auto& event : page->events) numbers.push_back(event.sequence);
    filter.after = numbers.back();
  }
  ASSERT_EQ(numbers.size(), 26U);
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
  EXPECT_EQ(numbers.front(), 5U);
}

TEST_F(DatabaseTest, PruneKeepsTheYoungestByNumberAndAge) {
  const auto database = open();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    // With gaps, as not every event is kept.
    ASSERT_TRUE(database->put_event(numbered_event(i * 3, static_cast<std::int64_t>(i))));
  }
  ASSERT_TRUE(database->prune(10, at_ms(0)));
  EXPECT_EQ(database->events({at_ms(0), ""}, 1000)->events.size(), 10U);
  ASSERT_TRUE(database->prune(10, at_ms(95)));
  EXPECT_EQ(database->events({at_ms(0), ""}, 1000)->events.front().time, at_ms(95));
  // The last one stays, as the numbering goes on from it.
  ASSERT_TRUE(database->prune(10, at_ms(1'000'000)));
  EXPECT_EQ(database->events({at_ms(0), ""}, 1000)->events.size(), 1U);
  EXPECT_EQ(*database->last_sequence(), 300U);
}

TEST_F(DatabaseTest, TransactionsAreAllOrNothing) {
  const auto database = open();
  ASSERT_TRUE(database->begin());
  ASSERT_TRUE(database->put_process({"i1", "m", 1, 1, "b"}));
  database->rollback();
  EXPECT_TRUE(database->processes()->empty());
  database->rollback();  // none is open: no harm
  ASSERT_TRUE(database->begin());
  ASSERT_TRUE(database->put_process({"i1", "m", 1, 1, "b"}));
  ASSERT_TRUE(database->commit());
  EXPECT_EQ(database->processes()->size(), 1U);
}

TEST_F(DatabaseTest, NewerSchemaIsRefusedAndLeftAlone) {
  open().reset();
  {
    SQLite::Database other(path_, SQLite::OPEN_READWRITE);
    other.exec("INSERT INTO schema_migrations VALUES (" + std::to_string(newest_schema() + 5) +
               ", 'then')");
  }
  const auto opened = Database::open(path_, at_ms(0));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().reason, Reason::kConflict);
  EXPECT_THAT(opened.error().message,
              HasSubstr("schema " + std::to_string(newest_schema() + 5) + ", but"));
  EXPECT_THAT(opened.error().message, HasSubstr("newer berth"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(DatabaseTest, ReopeningKeepsEverything) {
  {
    const auto database = open();
    ASSERT_TRUE(database->put_event(numbered_event(41, 1)));
    database->close_well();
  }
  const auto database = open();
  EXPECT_EQ(*database->last_sequence(), 41U);
  EXPECT_EQ(moved_aside_, "");
}

TEST_F(DatabaseTest, WhatIsNoDatabaseIsMovedAside) {
  append(path_, std::string(20'000, 'x'));
  const auto database = open();
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(moved_aside_, path_ + ".corrupt-20260921T141320000Z");
  EXPECT_EQ(slurp(moved_aside_), std::string(20'000, 'x'));
  EXPECT_TRUE(database->put_process({"i", "m", 1, 1, "b"}));
}

TEST_F(DatabaseTest, DamagedPagesAreFoundAfterACrashAndMovedAside) {
  {
    const auto database = open();
    for (std::uint64_t i = 1; i <= 2000; ++i) {
      ASSERT_TRUE(database->put_event(numbered_event(i, 1)));
    }
    // Not closed well.
  }
  const auto size = std::filesystem::file_size(path_);
  ASSERT_GT(size, 100'000U);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file << std::string(30'000, '\xA5');
  }
  const auto database = open();
  ASSERT_NE(database, nullptr);
  EXPECT_NE(moved_aside_, "");
  EXPECT_EQ(*database->last_sequence(), 0U);
}

TEST_F(DatabaseTest, OnlyThreeDamagedFilesAreKept) {
  for (int i = 0; i < 6; ++i) {
    append(path_, std::string(5000, 'x'));
    std::filesystem::resize_file(path_, 5000);
    { std::ofstream(path_, std::ios::trunc) << std::string(5000, 'x'); }
    const auto opened = Database::open(path_, at_ms(1'790'000'000'000 + i));
    ASSERT_TRUE(opened) << opened.error().message;
  }
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    if (entry.path().string().find("corrupt") != std::string::npos) ++kept;
  }
  EXPECT_EQ(kept, 3);
}

TEST_F(DatabaseTest, MissingDirectoryIsAClearError) {
  const auto opened = Database::open(dir_.file("none/state.db"), at_ms(0));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().reason, Reason::kStoreUnavailable);
  EXPECT_THAT(opened.error().message, HasSubstr("none/state.db"));
  EXPECT_THAT(opened.error().message, HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace berth::store
