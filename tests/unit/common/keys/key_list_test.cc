#include "common/keys/key_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace berth::keys {
namespace {

using testing::HasSubstr;

std::string hash(char digit) {
  return std::string(64, digit);
}

KeyList parse(const std::string& text) {
  auto list = KeyList::parse(text);
  EXPECT_TRUE(list) << text << ": " << list.error().front().message;
  return list ? *list : KeyList();
}

TEST(KeyList, ReadsKeysBetweenCommentsAndBlankLines) {
  const KeyList list = parse("# who may come\n\n alice:client:team-a:" + hash('a') +
                             " \n  # and\n" + "bob:admin::" + hash('B') + "\r\n");
  const std::vector<Key> keys = list.keys();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].name, "alice");
  EXPECT_EQ(keys[0].role, KeyRole::kClient);
  EXPECT_EQ(keys[0].group, "team-a");
  EXPECT_EQ(keys[0].hash, hash_from_hex(hash('a')));
  EXPECT_EQ(keys[1].name, "bob");
  EXPECT_EQ(keys[1].role, KeyRole::kAdmin);
  EXPECT_EQ(keys[1].group, "");
  EXPECT_TRUE(parse("").keys().empty());
}

TEST(KeyList, KeepsEverythingElseWhenKeysComeAndGo) {
  KeyList list = parse("# first\nalice:client::" + hash('a') + "\n\n# last\n");
  ASSERT_TRUE(list.add({"bob", KeyRole::kAdmin, "ops", *hash_from_hex(hash('b'))}));
  EXPECT_EQ(list.text(), "# first\nalice:client::" + hash('a') +
                             "\n\n# last\nbob:admin:ops:" + hash('b') + "\n");
  ASSERT_TRUE(list.remove("alice"));
  EXPECT_EQ(list.text(), "# first\n\n# last\nbob:admin:ops:" + hash('b') + "\n");
}

TEST(KeyList, RefusesWhatCannotBe) {
  KeyList list = parse("alice:client::" + hash('a') + "\n");
  const KeyHash other = *hash_from_hex(hash('b'));
  EXPECT_EQ(list.add({"alice", KeyRole::kClient, "", other}).error().reason, Reason::kConflict);
  EXPECT_EQ(list.add({"b", KeyRole::kClient, "", *hash_from_hex(hash('a'))}).error().reason,
            Reason::kConflict);
  EXPECT_EQ(list.add({"b c", KeyRole::kClient, "", other}).error().reason,
            Reason::kInvalidArgument);
  EXPECT_EQ(list.add({"b", KeyRole::kClient, "x:y", other}).error().reason,
            Reason::kInvalidArgument);
  const Status gone = list.remove("alise");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().reason, Reason::kNotFound);
  EXPECT_THAT(gone.error().message, HasSubstr("did you mean alice?"));
}

TEST(KeyList, SaysWhatIsWrongAndWhere) {
  const struct {
    std::string line;
    const char* says;
  } cases[] = {
      {"alice", "found 1 field"},
      {"alice:client:" + hash('a'), "found 3 fields"},
      {"alice:client:a:b:" + hash('a'), "found 5 fields"},
      {":client::" + hash('a'), "the name is empty"},
      {"al ice:client::" + hash('a'), "the name may have letters"},
      {"al\xc3\xa4:client::" + hash('a'), "the name may have letters"},
      {std::string(65, 'a') + ":client::" + hash('a'), "has 65 bytes; at most 64"},
      {"alice:root::" + hash('a'), "expected the role client or admin, found 'root'"},
      {"alice:Client::" + hash('a'), "expected the role client or admin"},
      {"alice:client:t/x:" + hash('a'), "the tenant group may have"},
      {"alice:client::" + hash('g'), "64 hexadecimal digits"},
      {"alice:client::", "64 hexadecimal digits"},
      {"alice:client::berth-abcdef", "found a key itself"},
  };
  for (const auto& wrong : cases) {
    const auto list = KeyList::parse("# x\n" + wrong.line + "\n");
    ASSERT_FALSE(list) << wrong.line;
    ASSERT_EQ(list.error().size(), 1U) << wrong.line;
    EXPECT_EQ(list.error().front().line, 2U) << wrong.line;
    EXPECT_THAT(list.error().front().message, HasSubstr(wrong.says));
  }
  const auto secret = KeyList::parse("alice:client::berth-abcdef\n");
  EXPECT_EQ(secret.error().front().message.find("abcdef"), std::string::npos);
}

TEST(KeyList, RefusesANameOrAKeyThatIsThereTwice) {
  const auto names = KeyList::parse("a:client::" + hash('a') + "\nb:client::" + hash('b') +
                                    "\na:admin::" + hash('c') + "\n");
  ASSERT_FALSE(names);
  EXPECT_EQ(names.error().front().line, 3U);
  EXPECT_THAT(names.error().front().message, HasSubstr("the name of line 1, 'a'"));
  const auto keys = KeyList::parse("a:client::" + hash('a') + "\nb:admin::" + hash('A') + "\n");
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().front().line, 2U);
  EXPECT_THAT(keys.error().front().message, HasSubstr("the key of line 1, 'a'"));
}

TEST(KeyList, HasABound) {
  std::string text;
  for (std::size_t i = 0; i < KeyList::kMaxKeys; ++i) {
    KeyHash one{};
    one[0] = static_cast<std::uint8_t>(i >> 8U);
    one[1] = static_cast<std::uint8_t>(i & 255U);
    text += "k" + std::to_string(i) + ":client::" + to_hex(one) + "\n";
  }
  KeyList list = parse(text);
  EXPECT_EQ(list.add({"more", KeyRole::kClient, "", *hash_from_hex(hash('f'))}).error().reason,
            Reason::kConflict);
  EXPECT_FALSE(KeyList::parse(text + "more:client::" + hash('f') + "\n"));
}

Key any_key() {
  const std::string letters = "abcXYZ019._-";
  const auto name = [&](int low) {
    return rc::gen::mapcat(rc::gen::inRange(low, 65), [letters](int size) {
      return rc::gen::container<std::string>(static_cast<std::size_t>(size),
                                             rc::gen::elementOf(letters));
    });
  };
  Key key;
  key.name = *name(1);
  key.role = *rc::gen::element(KeyRole::kClient, KeyRole::kAdmin);
  key.group = *name(0);
  for (std::uint8_t& byte : key.hash) byte = *rc::gen::arbitrary<std::uint8_t>();
  return key;
}

RC_GTEST_PROP(KeyListProperty, WhatIsWrittenReadsBack, ()) {
  KeyList list;
  std::vector<Key> kept;
  const int count = *rc::gen::inRange(0, 8);
  for (int i = 0; i < count; ++i) {
    const Key key = any_key();
    if (list.add(key)) kept.push_back(key);
  }
  const auto again = KeyList::parse(list.text());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->keys() == kept);
  RC_ASSERT(again->text() == list.text());
}

RC_GTEST_PROP(KeyListProperty, AnyTextIsTakenAsItIsOrRefusedWithALine, (const std::string& noise)) {
  const std::string text = *rc::gen::element(noise, noise + "\na:client::" + hash('a'),
                                             "a:admin:g:" + hash('a') + noise);
  const auto list = KeyList::parse(text);
  if (!list) {
    RC_ASSERT(!list.error().empty());
    for (const ListProblem& problem : list.error()) RC_ASSERT(problem.line > 0U);
    return;
  }
  std::set<std::string> names;
  for (const Key& key : list->keys()) RC_ASSERT(names.insert(key.name).second);
  const auto again = KeyList::parse(list->text());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->keys() == list->keys());
}

}  // namespace
}  // namespace berth::keys
