#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "common/gguf/gguf.h"
#include "common/gguf/names.h"
#include "common/gguf/types.h"

namespace berth::gguf {
namespace {

TEST(GgufTypes, KnowsNamesAndSizes) {
  EXPECT_EQ(type_name(0), "F32");
  EXPECT_EQ(type_name(12), "Q4_K");
  EXPECT_EQ(type_name(30), "BF16");
  EXPECT_EQ(type_name(39), "MXFP4");
  EXPECT_EQ(type_bytes(0, 3), 12U);
  EXPECT_EQ(type_bytes(8, 64), 68U);
  EXPECT_EQ(type_bytes(12, 512), 288U);
  EXPECT_EQ(type_bytes(39, 32), 17U);
}

TEST(GgufTypes, UnknownAndRemovedTypesHaveNoSize) {
  for (const std::uint32_t type : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 43U, 1000U, 0xFFFFFFFFU}) {
    EXPECT_TRUE(type_name(type).empty()) << type;
    EXPECT_EQ(type_bytes(type, 256), 0U) << type;
    EXPECT_EQ(type_block_elements(type), 0U) << type;
  }
}

TEST(GgufTypes, PartialBlocksAndOverflowsHaveNoSize) {
  EXPECT_EQ(type_bytes(8, 33), 0U);
  EXPECT_EQ(type_bytes(0, std::numeric_limits<std::uint64_t>::max()), 0U);
}

TEST(GgufTypes, EveryTypeIsOrderedAndWhole) {
  for (std::uint32_t type = 0; type < 64; ++type) {
    if (type_name(type).empty()) continue;
    const std::uint64_t block = type_block_elements(type);
    ASSERT_GT(block, 0U) << type;
    EXPECT_GT(type_bytes(type, block), 0U) << type;
    EXPECT_EQ(type_bytes(type, block * 3), type_bytes(type, block) * 3) << type;
  }
}

TEST(GgufNames, TellsShardsApart) {
  EXPECT_TRUE(is_later_shard("x-00002-of-00003.gguf"));
  EXPECT_TRUE(is_later_shard("x-00003-of-00003.gguf"));
  for (const std::string name :
       {"x-00001-of-00003.gguf", "x.gguf", "x-00004-of-00003.gguf", "x-00000-of-00003.gguf",
        "x-0002-of-0003.gguf", "-00002-of-00003.gguf", "x-00002-of-00003.gguf.part",
        "x-00002-of-0000a.gguf", "x_00002-of-00003.gguf", ""}) {
    EXPECT_FALSE(is_later_shard(name)) << name;
  }
}

TEST(GgufNames, ModelNameIsTheStem) {
  EXPECT_EQ(model_name("qwen3-8b.gguf"), "qwen3-8b");
  EXPECT_EQ(model_name("qwen3-8b-00001-of-00003.gguf"), "qwen3-8b");
  EXPECT_EQ(model_name("a.b.gguf"), "a.b");
  EXPECT_EQ(model_name("plain"), "plain");
  EXPECT_EQ(model_name(".gguf"), ".gguf");
}

TEST(GgufNames, ShardNamesReadBack) {
  const std::string name = shard_name("dir/x", 2, 12);
  EXPECT_EQ(name, "dir/x-00002-of-00012.gguf");
  const auto parsed = parse_shard_name(name);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->prefix, "dir/x");
  EXPECT_EQ(parsed->number, 2U);
  EXPECT_EQ(parsed->count, 12U);
}

}  // namespace
}  // namespace berth::gguf
