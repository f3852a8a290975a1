#include "supervisor/store/sqlite_store.h"

#include <SQLiteCpp/Database.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "supervisor/process/asio_clock.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"
#include "tests/unit/store/failure_records.h"
#include "tests/unit/store/records.h"

namespace berth::store {
namespace {

using testing::at_ms;
using ::testing::HasSubstr;
using testing::load_record;
using testing::numbered_event;
using testing::run_until;
using testing::TempDir;

// As on a full disk: this process can write no file beyond so many bytes. Until its end.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes = 1) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    EXPECT_EQ(::sigaction(SIGXFSZ, &ignore, &action_), 0);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &limit_), 0);
    rlimit none = limit_;
    none.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit_), 0);
    EXPECT_EQ(::sigaction(SIGXFSZ, &action_, nullptr), 0);
  }

 private:
  struct sigaction action_ {};
  rlimit limit_{};
};

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    options_.path = dir_.file("state.db");
    options_.on_degraded = [this](const events::ServerDegraded& event) {
      EXPECT_EQ(event.part, "store");
      problems_.push_back(event.problem);
    };
  }
  void open() {
    auto opened = RealStore::open(options_, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  std::vector<LoadRecord> loads(const std::string& model, std::size_t limit = 1000) {
    std::optional<Result<std::vector<LoadRecord>>> answer;
    store_->loads(model, limit, [&answer](auto result) { answer = std::move(result); });
    EXPECT_TRUE(run_until(io_, [&answer] { return answer.has_value(); }));
    if (!answer || !*answer) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    return **answer;
  }

  std::vector<core::FailureRecord> failures() {
    std::optional<Result<std::vector<core::FailureRecord>>> answer;
    store_->failures("", 1000, [&answer](auto result) { answer = std::move(result); });
    EXPECT_TRUE(run_until(io_, [&answer] { return answer.has_value(); }));
    if (!answer || !*answer) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    return **answer;
  }

  TempDir dir_;
  boost::asio::io_context io_{1};
  process::AsioClock clock_{io_};
  StoreOptions options_;
  std::vector<std::string> problems_;
  std::unique_ptr<RealStore> store_;
};

TEST_F(StoreTest, ReadersSeeWhatWasWrittenBeforeThem) {
  open();
  for (int i = 0; i < 50; ++i) {
    store_->put_load(load_record(std::to_string(i), "m", i));
    bool answered = false;
    store_->loads("m", 1, [&](const auto& result) {
      answered = true;
      EXPECT_EQ(result->front().id, std::to_string(i));
    });
    EXPECT_FALSE(answered);  // never from within the call
    ASSERT_TRUE(run_until(io_, [&] { return answered; }));
  }
}

TEST_F(StoreTest, ProcessesAndEventsComeBack) {
  open();
  store_->put_process({"i1", "m", 7, 9, "b"});
  store_->put_process({"i2", "m", 8, 9, "b"});
  store_->remove_process("i1");
  store_->put_event(numbered_event(1, 100));
  store_->put_event(numbered_event(2, 200, "job.started"));
  int answers = 0;
  store_->processes([&](const auto& result) {
    ++answers;
    ASSERT_EQ(result->size(), 1U);
    EXPECT_EQ(result->front().instance, "i2");
  });
  store_->events({at_ms(0), "job."}, 10, [&](const auto& result) {
    ++answers;
    ASSERT_EQ(result->events.size(), 1U);
    EXPECT_EQ(result->events.front().name, "job.started");
  });
  ASSERT_TRUE(run_until(io_, [&] { return answers == 2; }));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(StoreTest, EndWritesWhatWasGivenAndTheNextStartContinues) {
  open();
  EXPECT_EQ(store_->last_sequence(), 0U);
  for (std::uint64_t i = 1; i <= 3000; ++i) store_->put_event(numbered_event(i, 1));
  store_.reset();
  open();
  EXPECT_EQ(store_->last_sequence(), 3000U);
}

TEST_F(StoreTest, EventsAreBounded) {
  options_.events_kept = 100;
  open();
  // Time is now, as age is judged by the wall clock.
  const std::int64_t now = clock_.wall_now().time_since_epoch().count();
  for (std::uint64_t i = 1; i <= 4000; ++i) store_->put_event(numbered_event(i, now));
  std::size_t count = 0;
  bool answered = false;
  store_->events({at_ms(0), ""}, 10'000, [&](const auto& result) {
    answered = true;
    count = result->events.size();
  });
  ASSERT_TRUE(run_until(io_, [&] { return answered; }));
  EXPECT_LT(count, 100U + 1024U);
  EXPECT_GE(count, 100U);
}

TEST_F(StoreTest, FullQueueDropsCountsAndRecovers) {
  options_.queue = 8;
  open();
  constexpr int kReads = 20;
  int answers = 0;
  std::optional<Reason> refused;
  {
    // Another connection holds the file, so that the worker waits with what it took.
    SQLite::Database other(options_.path, SQLite::OPEN_READWRITE);
    other.exec("BEGIN IMMEDIATE");
    // The worker takes at most one batch, the queue holds 8: more than these cannot be kept.
    for (int i = 0; i < 1000; ++i) store_->put_load(load_record(std::to_string(i), "m", i));
    for (int i = 0; i < kReads; ++i) {
      store_->loads("m", 1, [&](const auto& result) {
        ++answers;
        if (!result) refused = result.error().reason;
      });
    }
    ASSERT_TRUE(run_until(io_, [&] { return refused && !problems_.empty(); }));
    EXPECT_EQ(*refused, Reason::kStoreBusy);
    EXPECT_THAT(problems_.front(), HasSubstr("not kept"));
    other.exec("ROLLBACK");
  }
  ASSERT_TRUE(run_until(io_, [&] { return answers == kReads; }));
  // Later records are kept, and what was lost is said.
  int number = 1000;
  ASSERT_TRUE(run_until(io_, [&] {
    ++number;
    store_->put_load(load_record(std::to_string(number), "late", number));
    return problems_.size() >= 2;
  }));
  EXPECT_THAT(problems_[1], HasSubstr("kept again"));
  EXPECT_THAT(problems_[1], ::testing::ContainsRegex("[0-9]+ records were not"));
  EXPECT_FALSE(loads("late").empty());
}

// As on a full disk: the file cannot grow.
TEST_F(StoreTest, FullDiskCostsRecordsNotTheServer) {
  options_.retry_after = std::chrono::nanoseconds(1);
  open();
  store_->put_load(load_record("early", "m", 1));
  ASSERT_EQ(loads("m").size(), 1U);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 128UL * 1024UL;
  struct sigaction ignore {};
  struct sigaction action_before {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGXFSZ, &ignore, &action_before), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (std::uint64_t i = 1; i <= 3000; ++i) store_->put_event(numbered_event(i, 1));
  EXPECT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
  EXPECT_THAT(problems_.front(), HasSubstr("not kept"));
  // It still answers.
  EXPECT_EQ(loads("m").size(), 1U);

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_EQ(::sigaction(SIGXFSZ, &action_before, nullptr), 0);
  int number = 0;
  ASSERT_TRUE(run_until(io_, [&] {
    ++number;
    store_->put_load(load_record("late" + std::to_string(number), "m", number + 1));
    return !problems_.empty() && problems_.back().find("kept again") != std::string::npos;
  }));
  store_.reset();
  open();
  EXPECT_THAT(loads("m").front().id, HasSubstr("late"));
}

// The same, for failures of loads: they wait for better times.
TEST_F(StoreTest, L18_FullDiskCostsNoFailureAndNoLift) {
  options_.retry_after = std::chrono::nanoseconds(1);
  open();
  store_->put_failure(testing::full_failure(1, "m"));
  store_->put_failure(testing::full_failure(2, "other"));
  ASSERT_EQ(failures().size(), 2U);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1;  // no file can be written
  struct sigaction ignore {};
  struct sigaction action_before {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGXFSZ, &ignore, &action_before), 0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  store_->put_event(numbered_event(1, 1));
  EXPECT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
  const core::Lift lift{at_ms(5), core::LiftCause::kSuccess, std::nullopt, {}};
  store_->lift_failure(testing::numbered_id(1), lift);
  store_->put_failure(testing::full_failure(3, "m"));
  store_->put_failure(testing::full_failure(4, "other"));
  store_->lift_failure(testing::numbered_id(4), lift);
  EXPECT_EQ(failures().size(), 2U);  // as it is in the file

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_EQ(::sigaction(SIGXFSZ, &action_before, nullptr), 0);
  // The end writes what waits, in the order of the calls.
  store_.reset();
  open();
  const std::vector<core::FailureRecord> kept = failures();
  ASSERT_EQ(kept.size(), 4U);
  EXPECT_EQ(kept[0].lifted, lift);
  EXPECT_FALSE(kept[1].lifted);
  EXPECT_EQ(kept[2].lifted->cause, core::LiftCause::kSuperseded);
  EXPECT_EQ(kept[3].lifted, lift);
}

// Neither does the first start need a disk.
TEST_F(StoreTest, L18_FirstStartOnAFullDiskServesAndKeepsLater) {
  options_.retry_after = std::chrono::milliseconds(1);
  {
    const FullDisk full;
    open();
    ASSERT_TRUE(store_);
    store_->put_failure(testing::full_failure(1, "m"));
    store_->put_load(load_record("a", "m", 1));
    ASSERT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
    EXPECT_THAT(problems_.front(), HasSubstr("What happens is not kept at present"));
    EXPECT_TRUE(failures().empty()) << "and nobody has to wait for what cannot be there";
    store_.reset();  // a second start finds what the first one left
    open();
    ASSERT_TRUE(store_);
    store_->put_failure(testing::full_failure(2, "m"));
    EXPECT_TRUE(failures().empty());
  }
  ASSERT_TRUE(run_until(io_, [this] { return problems_.back().find("again") < 100; }));
  EXPECT_EQ(failures().size(), 1U);
  store_.reset();
  open();
  EXPECT_EQ(failures().size(), 1U);
}

// Nor does a start with a file that is there already: what it holds is known, and what happens is
// kept in it later.
class FullDiskStartTest : public StoreTest {
 protected:
  FullDiskStartTest() {
    options_.retry_after = std::chrono::milliseconds(1);
    open();
    store_->put_failure(testing::full_failure(1, "m"));
    store_->put_event(numbered_event(41, at_ms(1).time_since_epoch().count()));
    EXPECT_EQ(failures().size(), 1U);
  }
  // As a kill leaves it: the files as they are in use.
  void kill() {
    const std::string used = std::exchange(options_.path, dir_.file("killed.db"));
    std::filesystem::copy_file(used, options_.path);
    std::filesystem::copy_file(used + "-wal", options_.path + "-wal");
    store_.reset();
  }
  void starts(rlim_t bytes) {
    {
      const FullDisk full(bytes);
      open();
      ASSERT_TRUE(store_);
      EXPECT_EQ(store_->last_sequence(), 41U);
      EXPECT_EQ(failures().size(), 1U);
      ASSERT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
      EXPECT_THAT(problems_.front(), HasSubstr("What happens is not kept at present"));
      store_->put_failure(testing::full_failure(2, "other"));
      EXPECT_EQ(failures().size(), 1U);
    }
    ASSERT_TRUE(run_until(io_, [this] { return problems_.back().find("again") < 100; }));
    EXPECT_EQ(failures().size(), 2U);
    store_.reset();
    open();
    EXPECT_EQ(failures().size(), 2U);
    EXPECT_EQ(store_->last_sequence(), 41U);
  }
};

TEST_F(FullDiskStartTest, L18_AfterAGoodEnd) {
  store_.reset();
  starts(1);
}

TEST_F(FullDiskStartTest, L18_WithANameThatIsNoUri) {
  store_.reset();
  const std::string used = std::exchange(options_.path, dir_.file("a?b#c%41.db"));
  std::filesystem::rename(used, options_.path);
  starts(1);
}

TEST_F(FullDiskStartTest, L18_AfterAKillWithALog) {
  kill();
  starts(1);
}

TEST_F(FullDiskStartTest, L18_WithASchemaThatTheDiskHasNoRoomToChange) {
  {
    SQLite::Database old(options_.path, SQLite::OPEN_READWRITE);
    old.exec("ALTER TABLE loads DROP COLUMN provenance");
    old.exec("DROP TABLE measured_loads");
    old.exec("DELETE FROM schema_migrations WHERE version > 2");
  }
  kill();
  // The log's index has room, but the log is longer already.
  constexpr rlim_t kIndex = 32'768;
  ASSERT_GT(std::filesystem::file_size(options_.path + "-wal"), kIndex);
  starts(kIndex);
  EXPECT_TRUE(loads("m").empty()) << "with the column that was missing";
}

// A small file system of its own with the database on it; for those who may mount one.
class SmallDisk {
 public:
  SmallDisk(std::string directory, const char* bounds) : directory_(std::move(directory)) {
    std::filesystem::create_directory(directory_);
    mounted_ = ::mount("none", directory_.c_str(), "tmpfs", 0, bounds) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(directory_.c_str(), MNT_DETACH);
  }
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] std::string file(const char* name) const { return directory_ + '/' + name; }
  // Takes all the room that is left.
  void fill() const {
    const UniqueFd filler(::open(file("filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(4096, 'x');
    while (::write(filler.get(), block.data(), block.size()) > 0) {
    }
  }

 private:
  std::string directory_;
  bool mounted_ = false;
};

TEST_F(FullDiskStartTest, L18_OnADiskWithoutRoom) {
  store_.reset();
  const SmallDisk disk(dir_.file("disk"), "size=1024k");
  if (!disk.mounted()) GTEST_SKIP() << "a small disk needs the right to mount one";
  std::filesystem::copy_file(std::exchange(options_.path, disk.file("state.db")),
                             disk.file("state.db"));
  disk.fill();
  open();
  ASSERT_TRUE(store_);
  EXPECT_EQ(failures().size(), 1U);
  store_->put_failure(testing::full_failure(2, "other"));
  std::filesystem::remove(disk.file("filler"));
  ASSERT_TRUE(run_until(io_, [this] { return problems_.size() >= 2; }));
  EXPECT_THAT(problems_.back(), HasSubstr("kept again"));
  EXPECT_EQ(failures().size(), 2U);
  store_.reset();
}

TEST_F(FullDiskStartTest, L18_OnADiskThatTakesNoMoreFiles) {
  store_.reset();
  const std::string used = options_.path;
  // The directory and the database; or the log, too, but not its index.
  for (const char* bounds : {"size=1024k,nr_inodes=2", "size=1024k,nr_inodes=3"}) {
    const SmallDisk disk(dir_.file("disk"), bounds);
    if (!disk.mounted()) GTEST_SKIP() << "a small disk needs the right to mount one";
    options_.path = disk.file("state.db");
    std::filesystem::copy_file(used, options_.path);
    open();
    ASSERT_TRUE(store_) << bounds;
    EXPECT_EQ(failures().size(), 1U);
    store_.reset();
  }
}

TEST_F(StoreTest, WhatTheDiskDoesNotTakeWaits) {
  options_.queue = 8;
  options_.retry_after = std::chrono::milliseconds(1);
  open();
  {
    const FullDisk full;
    for (int i = 1; i <= 5; ++i) store_->put_load(load_record(std::to_string(i), "m", i));
    ASSERT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
  }
  ASSERT_TRUE(run_until(io_, [this] { return problems_.size() == 2; }));
  EXPECT_THAT(problems_[1], HasSubstr("kept again; 0 records were not"));
  EXPECT_EQ(loads("m").size(), 5U);
  {
    const FullDisk full;
    for (int i = 6; i <= 25; ++i) store_->put_load(load_record(std::to_string(i), "m", i));
    // An answer says that all of them were looked at; the full queue may refuse the question.
    bool asked = false;
    bool answered = false;
    ASSERT_TRUE(run_until(io_, [&] {
      if (!std::exchange(asked, true)) {
        store_->loads("m", 1, [&](const auto& result) {
          asked = false;
          answered = result.has_value();
        });
      }
      return answered;
    }));
  }
  ASSERT_TRUE(run_until(io_, [this] { return problems_.size() == 4; }));
  EXPECT_THAT(problems_[3], HasSubstr("kept again; 12 records were not"));
  const std::vector<LoadRecord> kept = loads("m");
  ASSERT_EQ(kept.size(), 13U);
  EXPECT_EQ(kept.front().id, "25") << "the oldest are given up";
}

TEST_F(StoreTest, L18_ARecordThatIsRefusedForGoodTakesNoOtherAlong) {
  options_.retry_after = std::chrono::milliseconds(1);
  open();
  SQLite::Database other(options_.path, SQLite::OPEN_READWRITE);
  other.exec(
      "CREATE TRIGGER refuse BEFORE INSERT ON failures WHEN NEW.model = 'bad' "
      "BEGIN SELECT RAISE(ABORT, 'no'); END");
  store_->put_failure(testing::full_failure(1, "m"));
  store_->put_failure(testing::full_failure(2, "bad"));
  store_->put_failure(testing::full_failure(3, "other"));
  ASSERT_TRUE(run_until(io_, [this] { return problems_.size() == 3; }));
  EXPECT_THAT(problems_[0], HasSubstr("Failures of loads are not kept"));
  EXPECT_THAT(problems_[2], HasSubstr("kept again; 1 records were not"));
  EXPECT_EQ(failures().size(), 2U);
}

// What is less important must not keep them out.
TEST_F(StoreTest, L18_AFailureGetsThroughAFullQueue) {
  options_.queue = 8;
  options_.retry_after = std::chrono::milliseconds(1);
  open();
  {
    SQLite::Database other(options_.path, SQLite::OPEN_READWRITE);
    other.exec("BEGIN IMMEDIATE");
    for (std::uint64_t i = 1; i <= 1000; ++i) store_->put_event(numbered_event(i, 1));
    store_->put_failure(testing::full_failure(1, "m"));
    for (std::uint64_t i = 1001; i <= 2000; ++i) store_->put_event(numbered_event(i, 1));
    store_->put_failure(testing::full_failure(2, "other"));
    store_->lift_failure(testing::numbered_id(1),
                         {at_ms(5), core::LiftCause::kSuccess, std::nullopt, {}});
    ASSERT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
    other.exec("ROLLBACK");
  }
  store_.reset();
  open();
  const std::vector<core::FailureRecord> kept = failures();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_FALSE(kept[0].lifted);
  EXPECT_TRUE(kept[1].lifted);
}

TEST_F(StoreTest, L18_AFailureThatWaitsIsTriedAgainWithoutAnotherWrite) {
  options_.retry_after = std::chrono::milliseconds(50);
  open();
  SQLite::Database other(options_.path, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  store_->put_failure(testing::full_failure(1, "m"));
  ASSERT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
  other.exec("ROLLBACK");
  // Nobody asks the store for anything.
  ASSERT_TRUE(run_until(
      io_, [&other] { return other.execAndGet("SELECT count(*) FROM failures").getInt() == 1; }));
  ASSERT_TRUE(run_until(io_, [this] { return problems_.size() == 2; }));
  EXPECT_THAT(problems_[1], HasSubstr("kept again; 0 records were not"));
}

TEST_F(StoreTest, L18_MoreFailuresThanCanWaitAreLostLoudly) {
  options_.queue = 8;
  options_.waiting = 4;
  open();
  SQLite::Database other(options_.path, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  for (std::uint64_t i = 1; i <= 1000; ++i) store_->put_failure(testing::full_failure(i, "m"));
  ASSERT_TRUE(run_until(io_, [this] {
    return std::ranges::any_of(problems_, [](const std::string& problem) {
      return problem.find("Failures of loads are not kept") != std::string::npos;
    });
  }));
  other.exec("ROLLBACK");
}

TEST_F(StoreTest, L18_FailuresComeBackThroughTheStore) {
  options_.failures_per_model = 3;
  open();
  for (std::uint64_t i = 1; i <= 5; ++i) store_->put_failure(testing::full_failure(i, "m"));
  ASSERT_EQ(failures().size(), 3U);
  std::optional<std::size_t> standing;
  store_->standing_failures([&](const auto& result) { standing = result->size(); });
  ASSERT_TRUE(run_until(io_, [&] { return standing.has_value(); }));
  EXPECT_EQ(*standing, 1U);
  store_->lift_failure(testing::numbered_id(5),
                       {at_ms(9), core::LiftCause::kHand, std::nullopt, "eve"});
  EXPECT_EQ(failures().front().lifted->detail, "eve");
}

TEST_F(StoreTest, DamagedFileIsToldOnceTheLoopRuns) {
  testing::append(options_.path, std::string(10'000, 'x'));
  open();
  EXPECT_TRUE(problems_.empty());
  ASSERT_TRUE(run_until(io_, [this] { return !problems_.empty(); }));
  EXPECT_THAT(problems_.front(), HasSubstr("damaged"));
  EXPECT_THAT(problems_.front(), HasSubstr("state.db.corrupt-"));
}

TEST_F(StoreTest, ManyThreadsMayGiveEvents) {
  open();
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 200;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (std::uint64_t i = 1; i <= kEach; ++i) {
        store_->put_event(numbered_event(t * kEach + i, 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  store_.reset();
  open();
  EXPECT_EQ(store_->last_sequence(), kThreads * kEach);
}

TEST_F(StoreTest, AnswersMayComeAfterItsEnd) {
  open();
  int answers = 0;
  for (int i = 0; i < 100; ++i) store_->loads("m", 1, [&answers](const auto&) { ++answers; });
  store_.reset();
  ASSERT_TRUE(run_until(io_, [&] { return answers == 100; }));
}

TEST_F(StoreTest, EndIsBoundedWhenTheDiskHangs) {
  options_.close_wait = std::chrono::milliseconds(1);
  open();
  SQLite::Database other(options_.path, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  for (int i = 0; i < 3000; ++i) store_->put_load(load_record(std::to_string(i), "m", i));
  std::optional<Reason> refused;
  store_->loads("m", 1, [&](const auto& result) {
    if (!result) refused = result.error().reason;
  });
  store_.reset();
  ASSERT_TRUE(run_until(io_, [&] { return refused.has_value(); }));
  EXPECT_EQ(*refused, Reason::kShuttingDown);
  other.exec("ROLLBACK");
}

TEST_F(StoreTest, AnyDamagedPageLetsItStart) {
  open();
  for (std::uint64_t i = 1; i <= 200; ++i)
    store_->put_event(numbered_event(i, static_cast<std::int64_t>(i)));
  store_->put_load(load_record("a", "m", 1));
  store_.reset();
  const std::string sound = testing::slurp(options_.path);
  constexpr std::size_t kPage = 4096;
  ASSERT_GT(sound.size(), 8 * kPage);
  for (std::size_t at = 0; at < sound.size(); at += kPage) {
    std::string damaged = sound;
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), kPage, '\0');
    for (const auto* const end : {"", "-wal", "-shm"}) std::filesystem::remove(options_.path + end);
    testing::append(options_.path, damaged);
    open();
    store_.reset();
  }
}

TEST_F(StoreTest, TheLogOfWritesStaysSmall) {
  open();
  for (int i = 0; i < 300; ++i) {
    core::FailureRecord record = testing::full_failure(static_cast<std::uint64_t>(i + 1), "m");
    store_->put_failure(std::move(record));
    if (i % 10 == 0) {
      EXPECT_FALSE(failures().empty());
    }
  }
  EXPECT_EQ(failures().size(), 200U);
  EXPECT_LE(std::filesystem::file_size(options_.path + "-wal"), 1024U * 1024);
}

}  // namespace
}  // namespace berth::store
