#include "supervisor/store/measured_rows.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "supervisor/store/database.h"
#include "tests/unit/process/temp_dir.h"
#include "tests/unit/store/records.h"

namespace berth::store {
namespace {

using testing::at_ms;

MeasuredRecord record_of(const std::string& key, std::int64_t changed_ms) {
  MeasuredRecord record;
  record.key = key;
  record.model = "m";
  record.changed = at_ms(changed_ms);
  record.measured.loads = 3;
  record.measured.domains = {{"host", 10, 7, 20, 30, 45, {}},
                             {"GPU-1", 100, 0, UINT64_MAX, 5, {}, 99}};
  record.predicted = {{"host", 60, 9}, {"GPU-1", 1000, 0}};
  return record;
}

class MeasuredRowsTest : public ::testing::Test {
 protected:
  void open() {
    database_.reset();
    auto opened = Database::open(path_, at_ms(0));
    ASSERT_TRUE(opened);
    database_ = std::move(opened->database);
  }
  void SetUp() override { open(); }

  testing::TempDir directory_;
  const std::string path_ = directory_.path() + "/state.db";
  std::unique_ptr<Database> database_;
};

TEST_F(MeasuredRowsTest, M5_AreThereAfterARestartTheYoungestFirst) {
  MeasuredRecord changed = record_of("a", 1);
  ASSERT_TRUE(database_->put_measured(changed, 10));
  ASSERT_TRUE(database_->put_measured(record_of("b", 2), 10));
  changed.changed = at_ms(3);
  changed.measured.loads = 4;
  ASSERT_TRUE(database_->put_measured(changed, 10));
  open();
  const auto found = database_->measured();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unreadable, 0U);
  ASSERT_EQ(found->records.size(), 2U);
  EXPECT_EQ(found->records[0], changed);
  EXPECT_EQ(found->records[1], record_of("b", 2));
}

TEST_F(MeasuredRowsTest, M5_OnlyTheYoungestAreKept) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(database_->put_measured(record_of("key " + std::to_string(i), i), 3));
  }
  const auto found = database_->measured();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->records.size(), 3U);
  EXPECT_EQ(found->records[0].key, "key 4");
  EXPECT_EQ(found->records[2].key, "key 2");
}

TEST_F(MeasuredRowsTest, M5_ARowThatIsDamagedIsSkippedAndCounted) {
  ASSERT_TRUE(database_->put_measured(record_of("sound", 1), 100));
  {
    SQLite::Database other(path_, SQLite::OPEN_READWRITE);
    int at = 0;
    for (
        const char* const text :
        {"", "7", "{", "{}", R"({"loads":1,"domains":[],"predicted":{}})",
         R"({"loads":-1,"domains":[],"predicted":[]})",
         R"({"loads":1,"domains":[{"domain":"host"}],"predicted":[]})",
         R"({"loads":1,"domains":[{"domain":"","weights":1,"mapped":0,"kv":1,"working":1}],"predicted":[]})",
         R"({"loads":1,"domains":[{"domain":"host","weights":1e300,"mapped":0,"kv":1,"working":1}],"predicted":[]})",
         R"({"loads":1,"domains":[{"domain":"host","weights":1,"mapped":0,"kv":1,"working":1,"process":-5}],"predicted":[]})",
         R"({"loads":1,"domains":[{"domain":"host","weights":1,"mapped":0,"kv":1,"working":1,"at_least":"all"}],"predicted":[]})",
         R"({"loads":1,"domains":[],"predicted":[{"domain":"host"}]})",
         R"({"loads":1,"domains":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"predicted":[]})"}) {
      other.exec("INSERT INTO measured_loads VALUES ('k" + std::to_string(++at) + "', 'm', 5, '" +
                 text + "')");
    }
    other.exec("INSERT INTO measured_loads VALUES ('', 'm', 5, x'00ff')");
  }
  open();
  const auto found = database_->measured();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unreadable, 14U);
  ASSERT_EQ(found->records.size(), 1U);
  EXPECT_EQ(found->records[0], record_of("sound", 1));
}

}  // namespace
}  // namespace berth::store
