#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "supervisor/store/database.h"
#include "tests/unit/store/records.h"

namespace berth::store {
namespace {

using testing::at_ms;
using testing::load_record;

class ProvenLoadsTest : public ::testing::Test {
 protected:
  ProvenLoadsTest() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    auto opened = Database::open(directory_ + "/berth.db", at_ms(0));
    EXPECT_TRUE(opened);
    database_ = std::move(opened->database);
  }
  ~ProvenLoadsTest() override {
    database_.reset();
    std::filesystem::remove_all(directory_);
  }

  // A load that began then; `ready`: and became so.
  void put(const std::string& id, const std::string& model, std::int64_t started_ms, bool ready,
           const std::string& provenance) {
    LoadRecord record = load_record(id, model, started_ms);
    if (ready) record.ready = at_ms(started_ms + 1);
    record.provenance = provenance;
    ASSERT_TRUE(database_->put_load(record, 200));
  }

  std::string directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(ProvenLoadsTest, L6_TheYoungestOfAModelThatBecameReady) {
  put("a", "m", 1000, true, "old");
  put("b", "m", 2000, true, "young");
  put("c", "m", 3000, false, "failed");
  put("d", "other", 500, true, "its own");
  put("e", "never", 600, false, "x");
  put("f", "unknown", 700, true, "");
  const auto proven = database_->proven_loads();
  ASSERT_TRUE(proven);
  ASSERT_EQ(proven->size(), 2U);
  EXPECT_EQ(proven->at(0).model, "m");
  EXPECT_EQ(proven->at(0).provenance, "young");
  EXPECT_EQ(proven->at(1).model, "other");
  EXPECT_EQ(database_->loads("m", 9)->at(1).provenance, "young");
}

}  // namespace
}  // namespace berth::store
