#include "supervisor/process/instance_mark.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

constexpr const char* kInstance = "01890a5d-ac96-774b-bcce-b302099a8057";

std::string environment(const std::vector<std::string>& variables) {
  std::string text;
  for (const std::string& variable : variables) (text += variable) += '\0';
  return text;
}

TEST(InstanceMark, L4_IsFoundWhereverItStands) {
  const std::string mark = instance_mark(kInstance, "7-8");
  EXPECT_EQ(marked_instance(environment({mark}), "7-8"), kInstance);
  EXPECT_EQ(marked_instance(environment({"A=1", "", "B=", mark}), "7-8"), kInstance);
  EXPECT_EQ(marked_instance(environment({"BERTH_INSTANCE=mine", mark, "C=3"}), "7-8"), kInstance);
  EXPECT_EQ(marked_instance(mark, "7-8"), kInstance);
}

TEST(InstanceMark, L4_WhatIsNotOursIsNoMark) {
  const std::string mark = instance_mark(kInstance, "7-8");
  for (const std::string& text :
       {std::string(), environment({mark + "9"}), environment({mark.substr(0, mark.size() - 1)}),
        environment({"X" + mark}), environment({"X=" + mark}), environment({"BERTH_INSTANCE=@7-8"}),
        environment({"BERTH_INSTANCE=1234@7-8"}), environment({"BERTH_INSTANCE="})}) {
    EXPECT_FALSE(marked_instance(text, "7-8")) << text;
  }
}

TEST(InstanceMark, L4_EveryStateDirectoryHasAnOwnerOfItsOwn) {
  const testing::TempDir one;
  const testing::TempDir other;
  EXPECT_EQ(*mark_owner(one.path()), *mark_owner(one.path() + "/."));
  EXPECT_NE(*mark_owner(one.path()), *mark_owner(other.path()));
  EXPECT_FALSE(mark_owner(one.file("missing")));
}

TEST(InstanceMark, L4_ItsPartsAreFoundAmongVariables) {
  const auto mark = find_mark({"A=b", instance_mark("i", "1-2"), "BERTH_INSTANCE=odd"});
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->instance, "i");
  EXPECT_EQ(mark->owner, "1-2");
  EXPECT_FALSE(find_mark({"A=b", "BERTH_INSTANCE=odd"}));
}

}  // namespace
}  // namespace berth::process
