#include "supervisor/store/failure_rows.h"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/store/database.h"
#include "supervisor/store/migrations.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_store.h"
#include "tests/unit/process/temp_dir.h"
#include "tests/unit/store/failure_records.h"

namespace berth::store {
namespace {

using core::FailureRecord;
using core::Lift;
using core::LiftCause;
using testing::at_ms;
using testing::full_failure;
using testing::numbered_id;
using testing::TempDir;

constexpr std::size_t kPerModel = 200;

std::vector<Uuid> ids_of(const std::vector<FailureRecord>& records) {
  std::vector<Uuid> ids;
  for (const FailureRecord& record : records) ids.push_back(record.id);
  return ids;
}

class FailuresTest : public ::testing::Test {
 protected:
  void open() {
    database_.reset();
    auto opened = Database::open(path_, at_ms(1));
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_EQ(opened->moved_aside, "");
    database_ = std::move(opened->database);
  }
  std::vector<FailureRecord> failures(const std::string& model, std::size_t limit = 1000) {
    auto found = database_->failures(model, limit);
    EXPECT_TRUE(found);
    return found ? *found : std::vector<FailureRecord>();
  }

  TempDir dir_;
  std::string path_ = dir_.file("state.db");
  std::unique_ptr<Database> database_;
};

TEST_F(FailuresTest, L18_ComeBackNewestFirstWithEveryField) {
  open();
  const FailureRecord first = full_failure(1, "m");
  const FailureRecord second = full_failure(2, "other");
  ASSERT_TRUE(database_->put_failure(first, kPerModel));
  ASSERT_TRUE(database_->put_failure(second, kPerModel));
  open();
  EXPECT_EQ(failures(""), (std::vector{second, first}));
  EXPECT_EQ(failures("m"), std::vector{first});
  EXPECT_EQ(failures("", 1), std::vector{second});
  EXPECT_EQ(*database_->standing_failures(), (std::vector{first, second}));
  EXPECT_TRUE(failures("'; DROP TABLE failures; --").empty());
}

TEST_F(FailuresTest, L18_ANewOneSupersedesWhatStood) {
  open();
  ASSERT_TRUE(database_->put_failure(full_failure(1, "m"), kPerModel));
  ASSERT_TRUE(database_->put_failure(full_failure(2, "m"), kPerModel));
  EXPECT_EQ(ids_of(*database_->standing_failures()), std::vector{numbered_id(2)});
  const auto all = failures("m");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].lifted, (Lift{all[0].ended, LiftCause::kSuperseded, std::nullopt, {}}));
  // The older one again, as it was: nothing changes.
  ASSERT_TRUE(database_->put_failure(full_failure(1, "m"), kPerModel));
  EXPECT_EQ(failures("m"), all);
}

TEST_F(FailuresTest, L24_ALateOneLeavesWhatStandsAlone) {
  open();
  ASSERT_TRUE(database_->put_failure(full_failure(1, "m"), kPerModel));
  FailureRecord late = full_failure(2, "m");
  late.lifted = Lift{late.ended, LiftCause::kSuperseded, std::nullopt, {}};
  ASSERT_TRUE(database_->put_failure(late, kPerModel));
  EXPECT_EQ(ids_of(*database_->standing_failures()), std::vector{numbered_id(1)});
  EXPECT_EQ(failures("m").front(), late);
}

TEST_F(FailuresTest, L23_LiftsOnceAndSaysWhichFieldMoved) {
  open();
  ASSERT_TRUE(database_->put_failure(full_failure(1, "m"), kPerModel));
  const Lift lift{at_ms(99),
                  LiftCause::kProvenance,
                  core::MovedField{core::ProvenanceField::kWindow, "4096", "8192"},
                  {}};
  ASSERT_TRUE(database_->lift_failure(numbered_id(1), lift));
  ASSERT_TRUE(database_->lift_failure(numbered_id(1), {at_ms(100), LiftCause::kHand, {}, "eve"}));
  ASSERT_TRUE(database_->lift_failure(numbered_id(7), lift));  // never there
  open();
  EXPECT_EQ(failures("m").front().lifted, lift);
  EXPECT_TRUE(database_->standing_failures()->empty());
}

TEST_F(FailuresTest, L18_HistoryIsBoundedAndKeepsWhatStands) {
  open();
  ASSERT_TRUE(database_->put_failure(full_failure(1, "m"), 10));
  for (std::uint64_t i = 2; i <= 40; ++i) {
    FailureRecord late = full_failure(i, "m");
    late.lifted = Lift{late.ended, LiftCause::kSuperseded, std::nullopt, {}};
    ASSERT_TRUE(database_->put_failure(late, 10));
  }
  ASSERT_TRUE(database_->put_failure(full_failure(50, "other"), 10));
  const auto kept = failures("m");
  ASSERT_EQ(kept.size(), 10U);
  EXPECT_EQ(kept.front().id, numbered_id(40));
  EXPECT_EQ(kept[8].id, numbered_id(32));
  EXPECT_EQ(kept.back().id, numbered_id(1));
  EXPECT_EQ(failures("other").size(), 1U);
}

TEST_F(FailuresTest, L18_AllModelsTogetherAreBoundedToo) {
  open();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    ASSERT_TRUE(database_->put_failure(full_failure(i, "m" + std::to_string(i % 10)), kPerModel));
  }
  SQLite::Database other(path_, SQLite::OPEN_READWRITE);
  prune_failures(other, 12);
  EXPECT_EQ(failures("").size(), 12U);
  EXPECT_EQ(database_->standing_failures()->size(), 10U);
}

// What the first released schema made, with records in it.
TEST_F(FailuresTest, L18_SchemaOneGoesOnWithItsData) {
  open();
  ASSERT_TRUE(database_->put_load(testing::load_record("a", "m", 1), kPerModel));
  ASSERT_TRUE(database_->put_process({"i", "m", 1, 2, "b"}));
  ASSERT_TRUE(database_->put_event(testing::numbered_event(41, 1)));
  database_.reset();
  {
    SQLite::Database old(path_, SQLite::OPEN_READWRITE);
    old.exec("DROP TABLE failures");
    old.exec("DROP TABLE measured_loads");
    old.exec("ALTER TABLE loads DROP COLUMN provenance");
    old.exec("DELETE FROM schema_migrations WHERE version > 1");
    EXPECT_EQ(old.execAndGet("SELECT max(version) FROM schema_migrations").getInt(), 1);
  }
  open();
  EXPECT_EQ(database_->loads("m", 10)->size(), 1U);
  EXPECT_EQ(database_->processes()->size(), 1U);
  EXPECT_EQ(*database_->last_sequence(), 41U);
  EXPECT_TRUE(failures("").empty());
  ASSERT_TRUE(database_->put_failure(full_failure(1, "m"), kPerModel));
  open();
  EXPECT_EQ(failures("").size(), 1U);
  SQLite::Database now(path_, SQLite::OPEN_READONLY);
  EXPECT_EQ(now.execAndGet("SELECT max(version) FROM schema_migrations").getInt(), newest_schema());
  EXPECT_EQ(now.execAndGet("SELECT count(*) FROM schema_migrations").getInt(), newest_schema());
}

// The twin that simulations use behaves as the file does.
struct Twins {
  sim::SimClock clock;
  sim::SimStore simulated{clock};
  TempDir dir;
  std::unique_ptr<Database> database;

  std::vector<FailureRecord> simulated_failures(const std::string& model, std::size_t limit) {
    std::optional<Result<std::vector<FailureRecord>>> answer;
    simulated.failures(model, limit, [&](auto result) { answer = std::move(result); });
    clock.settle();
    return **answer;
  }
  std::vector<FailureRecord> simulated_standing() {
    std::optional<Result<std::vector<FailureRecord>>> answer;
    simulated.standing_failures([&](auto result) { answer = std::move(result); });
    clock.settle();
    return **answer;
  }
};

RC_GTEST_PROP(FailuresProperty, L18_SimulatedStoreKeepsWhatTheFileKeeps, ()) {
  Twins twins;
  auto opened = Database::open(twins.dir.file("state.db"), at_ms(1));
  RC_ASSERT(opened.has_value());
  twins.database = std::move(opened->database);
  RC_ASSERT(twins.database->begin().has_value());
  const auto steps = *rc::gen::inRange(0, 30);
  for (int i = 0; i < steps; ++i) {
    const auto number = *rc::gen::inRange<std::uint64_t>(1, 12);
    if (*rc::gen::inRange(0, 3) == 0) {
      const Lift lift{at_ms(i), LiftCause::kHand, std::nullopt, "eve"};
      RC_ASSERT(twins.database->lift_failure(numbered_id(number), lift).has_value());
      twins.simulated.lift_failure(numbered_id(number), lift);
      continue;
    }
    FailureRecord record = full_failure(number, number % 2 == 0 ? "even" : "odd");
    if (*rc::gen::arbitrary<bool>()) {
      record.lifted = Lift{record.ended, LiftCause::kSuperseded, std::nullopt, {}};
    }
    RC_ASSERT(twins.database->put_failure(record, kPerModel).has_value());
    twins.simulated.put_failure(record);
  }
  RC_ASSERT(*twins.database->failures("", 1000) == twins.simulated_failures("", 1000));
  RC_ASSERT(*twins.database->failures("odd", 3) == twins.simulated_failures("odd", 3));
  const auto standing = *twins.database->standing_failures();
  RC_ASSERT(standing == twins.simulated_standing());
  RC_ASSERT(standing.size() <= 2U);
}

}  // namespace
}  // namespace berth::store
