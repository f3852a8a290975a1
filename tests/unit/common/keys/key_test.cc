#include "common/keys/key.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace berth::keys {
namespace {

TEST(Key, IsRandomAndKnownByItsPrefix) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const Result<std::string> key = make_key();
    ASSERT_TRUE(key) << key.error().message;
    EXPECT_TRUE(key->starts_with("berth-")) << *key;
    EXPECT_EQ(key->size(), kKeyPrefix.size() + 43) << "256 bits, 6 in a character";
    EXPECT_EQ(key->find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789-_"),
              std::string::npos)
        << *key;
    EXPECT_TRUE(seen.insert(*key).second);
  }
}

TEST(Key, HashIsSha256) {
  EXPECT_EQ(to_hex(hash_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(hash_of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Key, HashIsComparedWhole) {
  const KeyHash hash = hash_of("a");
  EXPECT_TRUE(same_hash(hash, hash_of("a")));
  for (std::size_t i = 0; i < hash.size(); ++i) {
    KeyHash other = hash;
    other.at(i) ^= 1U;
    EXPECT_FALSE(same_hash(hash, other)) << i;
  }
}

TEST(Key, HashReadsBack) {
  const KeyHash hash = hash_of("a");
  EXPECT_EQ(hash_from_hex(to_hex(hash)), hash);
  std::string upper = to_hex(hash);
  for (char& c : upper) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  EXPECT_EQ(hash_from_hex(upper), hash);
  EXPECT_EQ(hash_from_hex(""), std::nullopt);
  EXPECT_EQ(hash_from_hex(std::string(63, '0')), std::nullopt);
  EXPECT_EQ(hash_from_hex(std::string(65, '0')), std::nullopt);
  EXPECT_EQ(hash_from_hex(std::string(63, '0') + "g"), std::nullopt);
}

}  // namespace
}  // namespace berth::keys
