#include "common/reason.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "common/version.h"

namespace berth {
namespace {

constexpr std::array kAll = {
#define BERTH_REASON(id, name, http, grpc, retry, sentence) Reason::id,
#include "common/reasons.def"
#undef BERTH_REASON
};

TEST(Reason, TableIsSound) {
  std::set<std::string_view> names;
  for (const Reason reason : kAll) {
    const ReasonInfo& info = reason_info(reason);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_GE(info.http_status, 400) << info.name;
    EXPECT_LT(info.http_status, 600) << info.name;
    EXPECT_GT(info.grpc_code, 0) << info.name;
    EXPECT_LE(info.grpc_code, 16) << info.name;
    EXPECT_TRUE(info.sentence.ends_with('.')) << info.name;
    EXPECT_EQ(reason_from_name(info.name), reason);
  }
  EXPECT_EQ(reason_from_name("no_such_reason"), std::nullopt);
  EXPECT_EQ(reason_from_name(""), std::nullopt);
}

TEST(Version, IsKnown) {
  EXPECT_FALSE(kVersion.empty());
  EXPECT_FALSE(kBuildId.empty());
}

}  // namespace
}  // namespace berth
