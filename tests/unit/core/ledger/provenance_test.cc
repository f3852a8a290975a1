#include "supervisor/core/ledger/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/ledger/records.h"

namespace berth::core {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::some_provenance;

TEST(Provenance, L19_NothingMovesWhereAllIsTheSame) {
  EXPECT_FALSE(moved_field(some_provenance(), some_provenance()));
  EXPECT_FALSE(moved_field({}, {}));
}

TEST(Provenance, L19_WhatIsNotKnownIsNeverAChange) {
  EXPECT_FALSE(moved_field({}, some_provenance()));
  EXPECT_FALSE(moved_field(some_provenance(), {}));
}

// A record of before there was this field.
TEST(Provenance, L19_AProgramThatWasNotKnownIsNoChange) {
  ProvenanceTexts texts = to_texts(some_provenance());
  texts.at(static_cast<std::size_t>(ProvenanceField::kProgram)).clear();
  const Provenance old = provenance_from_texts(texts);
  EXPECT_FALSE(old.program);
  EXPECT_FALSE(moved_field(old, some_provenance()));
}

TEST(Provenance, L23_ADriverThatCouldNotBeReadIsNoChange) {
  Provenance unread = some_provenance();
  unread.devices->front().driver.clear();
  EXPECT_FALSE(moved_field(some_provenance(), unread));
  EXPECT_FALSE(moved_field(unread, some_provenance()));
  unread.devices->front().id = "CUDA1";
  EXPECT_TRUE(moved_field(some_provenance(), unread));
  unread.devices->clear();
  EXPECT_TRUE(moved_field(some_provenance(), unread));
}

TEST(Provenance, L23_TellsApartWhatAProgramWritesItself) {
  const WallTime from = WallTime(std::chrono::milliseconds(1'800'000'000'000));
  const WallTime to = from + std::chrono::seconds(5);
  const auto at = [from](std::chrono::milliseconds after) {
    return std::chrono::nanoseconds(from.time_since_epoch() + after).count();
  };
  const Provenance old = some_provenance();
  EXPECT_FALSE(arguments_written(old, old, from, to));
  Provenance now = some_provenance();
  now.program->back() = {"/srv/server.py", 2000, at(std::chrono::seconds(2)), 12};
  now.program->push_back({"/srv/new.log", 1, at(std::chrono::seconds(5)), 14});
  EXPECT_EQ(arguments_written(old, now, from, to),
            (std::vector<std::string>{"/srv/server.py", "/srv/new.log"}));
  now.program->back().modified_ns = at(std::chrono::seconds(6));
  EXPECT_FALSE(arguments_written(old, now, from, to)) << "after the load";
  now = some_provenance();
  now.program->front().modified_ns = at(std::chrono::seconds(2));
  EXPECT_FALSE(arguments_written(old, now, from, to)) << "the program itself";
  now = some_provenance();
  now.program->pop_back();
  EXPECT_FALSE(arguments_written(old, now, from, to)) << "gone";
}

struct MoveCase {
  ProvenanceField field;
  std::string sentence;
  std::function<void(Provenance&)> change;
};

TEST(Provenance, L23_SaysWhichFieldMoved) {
  const std::vector<MoveCase> cases = {
      {ProvenanceField::kRuntime, "the worker's runtime moved: b5046 -> b5100",
       [](Provenance& p) { p.runtime = "b5100"; }},
      {ProvenanceField::kFiles, "the model's files moved: 3.73 GiB -> 3.72 GiB",
       [](Provenance& p) { p.files->front().size = 3'990'000'000; }},
      {ProvenanceField::kFiles, "the model's files moved: 4000000000 B -> 4000000001 B",
       [](Provenance& p) { p.files->front().size += 1; }},
      {ProvenanceField::kFiles, "the model's files moved: older -> written again",
       [](Provenance& p) { p.files->back().modified_ns += 1; }},
      {ProvenanceField::kFiles, "the model's files moved: another header -> a new header",
       [](Provenance& p) { p.files->front().header_hash = 8; }},
      {ProvenanceField::kFiles, "the model's files moved: the file of before -> another file",
       [](Provenance& p) { p.files->front().path = "/secret/b.gguf"; }},
      {ProvenanceField::kFiles, "the model's files moved: 2 files -> 1 file",
       [](Provenance& p) { p.files->pop_back(); }},
      {ProvenanceField::kBudget, "the memory budget moved: host 7.45 GiB -> host 14.9 GiB",
       [](Provenance& p) { p.budget->at("host") = 16'000'000'000; }},
      {ProvenanceField::kSequences, "the number of sequences moved: 4 -> 8",
       [](Provenance& p) { p.sequences = 8; }},
      {ProvenanceField::kWindow, "the served window moved: 4096 -> 8192",
       [](Provenance& p) { p.window = 8192; }},
      {ProvenanceField::kKvTypes, "the type of the KV cache moved: f16/q8_0 -> q8_0/q8_0",
       [](Provenance& p) { p.kv_types->keys = "q8_0"; }},
      {ProvenanceField::kDevices,
       "the devices or their drivers moved: CUDA0 (550.54) -> CUDA0 (560.1)",
       [](Provenance& p) { p.devices->front().driver = "560.1"; }},
      {ProvenanceField::kDevices,
       "the devices or their drivers moved: CUDA0 (550.54) -> the processor",
       [](Provenance& p) { p.devices->clear(); }},
      {ProvenanceField::kLaunch, "the launch arguments or settings moved",
       [](Provenance& p) { p.launch_hash = 1; }},
      {ProvenanceField::kProgram, "the program moved: 1000 B -> 1001 B",
       [](Provenance& p) { p.program->back().size += 1; }},
      {ProvenanceField::kProgram, "the program moved: older -> written again",
       [](Provenance& p) { p.program->front().modified_ns += 1; }},
      {ProvenanceField::kProgram, "the program moved: older -> written again",
       [](Provenance& p) { p.program->front().inode = 13; }},
      {ProvenanceField::kProgram, "the program moved: there -> not there",
       [](Provenance& p) {
         p.program->front() = {"/secret/python3", 0, 0, 0};
       }},
      {ProvenanceField::kProgram, "the program moved: the file of before -> another file",
       [](Provenance& p) { p.program->back().path = "/secret/b.py"; }},
      {ProvenanceField::kProgram, "the program moved: 2 files -> 1 file",
       [](Provenance& p) { p.program->pop_back(); }},
  };
  for (const MoveCase& one : cases) {
    Provenance now = some_provenance();
    one.change(now);
    const auto moved = moved_field(some_provenance(), now);
    ASSERT_TRUE(moved) << one.sentence;
    EXPECT_EQ(moved->field, one.field) << one.sentence;
    EXPECT_EQ(to_string(*moved), one.sentence);
    EXPECT_THAT(to_string(*moved), Not(HasSubstr("/secret")));
  }
}

// As one that was listed late at a start: no failure of a model that is elsewhere is lifted by it.
TEST(Provenance, L21_ADomainThatComesOrGoesIsNoMoveOfTheBudget) {
  Provenance now = some_provenance();
  now.budget->erase("CUDA0");
  (*now.budget)["CUDA1"] = 1;
  EXPECT_FALSE(moved_field(some_provenance(), now));
}

TEST(Provenance, L19_FileThatCouldNotBeReadIsAnotherOneOnceItCan) {
  Provenance old = some_provenance();
  old.files->front() = {old.files->front().path, 0, 0, 0};
  const auto moved = moved_field(old, some_provenance());
  ASSERT_TRUE(moved);
  EXPECT_EQ(to_string(*moved), "the model's files moved: 0 B -> 3.73 GiB");
}

TEST(Provenance, NamesAreStableAndReadBack) {
  EXPECT_EQ(provenance_field_name(ProvenanceField::kKvTypes), "kv_types");
  for (std::size_t i = 0; i < kProvenanceFields; ++i) {
    const auto field = static_cast<ProvenanceField>(i);
    EXPECT_EQ(provenance_field_from_name(provenance_field_name(field)), field);
  }
  EXPECT_FALSE(provenance_field_from_name("colour"));
}

TEST(Provenance, L19_LaunchHashCoversArgvEnvironmentAndTemplate) {
  const std::vector<std::string> argv = {"serve", "--port", "{port}"};
  const std::vector<std::string> environment = {"A=1", "B=2"};
  const std::uint64_t hash = launch_hash(argv, environment, "{{ messages }}");
  EXPECT_EQ(hash, launch_hash(argv, {"B=2", "A=1"}, "{{ messages }}"));
  EXPECT_NE(hash, launch_hash({"serve", "--port{port}"}, environment, "{{ messages }}"));
  EXPECT_NE(hash, launch_hash({"serve", "{port}", "--port"}, environment, "{{ messages }}"));
  EXPECT_NE(hash, launch_hash(argv, {"A=1", "B=3"}, "{{ messages }}"));
  EXPECT_NE(hash, launch_hash(argv, environment, "{{ message }}"));
  EXPECT_NE(launch_hash({"a"}, {}, ""), launch_hash({}, {"a"}, ""));
  EXPECT_NE(launch_hash({}, {"a"}, ""), launch_hash({}, {}, "a"));
}

// Kept in files: another value would lift every failure that stands.
TEST(Provenance, L19_LaunchHashAndTextsAreStable) {
  EXPECT_EQ(launch_hash({"a", "b"}, {"C=d"}, "e"), 17325492939519931738ULL);
  const ProvenanceTexts texts = to_texts(some_provenance());
  EXPECT_EQ(texts.at(0), "+|b5046");
  EXPECT_EQ(texts.at(1),
            "+|/models/a-00001-of-00002.gguf|4000000000|1700000000000000001|7"
            "|/models/a-00002-of-00002.gguf|3000000000|1700000000000000002|0");
  EXPECT_EQ(texts.at(2), "+|CUDA0|20000000000|host|8000000000");
  EXPECT_EQ(texts.at(3), "+|4");
  EXPECT_EQ(texts.at(4), "+|4096");
  EXPECT_EQ(texts.at(5), "+|f16|q8_0");
  EXPECT_EQ(texts.at(6), "+|CUDA0|550.54");
  EXPECT_EQ(texts.at(7), "+|18364758544493064720");
  EXPECT_EQ(texts.at(8),
            "+|/usr/bin/python3|6000000|1700000000000000003|11"
            "|/srv/server.py|1000|1700000000000000004|12");
}

TEST(Provenance, EmptyListsAreKnown) {
  Provenance provenance;
  provenance.devices.emplace();
  const ProvenanceTexts texts = to_texts(provenance);
  EXPECT_EQ(texts.at(6), "+");
  EXPECT_EQ(texts.at(0), "");
  EXPECT_EQ(provenance_from_texts(texts), provenance);
}

TEST(Provenance, L19_NamesOfFilesNeedNotBeText) {
  Provenance provenance;
  provenance.files.emplace().push_back({"/models/\xff|\xc3\xa4\n.gguf", 1, 2, 3});
  const ProvenanceTexts texts = to_texts(provenance);
  EXPECT_EQ(texts.at(1), "+|/models/\\xff\\p\\xc3\\xa4\\n.gguf|1|2|3");
  EXPECT_EQ(provenance_from_texts(texts), provenance);
}

TEST(Provenance, UnreadableTextCostsItsFieldOnly) {
  for (const std::string bad : {"b5046", "+b", "+|a|b|c\\", "+|\\x", "+|\\xg0", "+|\\x+1",
                                "+|1|2|3", "+|-1", "+|1 ", "+|99999999999999999999999", "+|"}) {
    ProvenanceTexts texts = to_texts(some_provenance());
    texts.at(3) = bad;
    Provenance expected = some_provenance();
    expected.sequences.reset();
    EXPECT_EQ(provenance_from_texts(texts), expected) << bad;
  }
}

RC_GTEST_PROP(ProvenanceProperty, L19_TextsReadBack,
              (const std::string& runtime, const std::vector<std::string>& names, std::uint32_t a,
               std::int64_t b, std::uint64_t c)) {
  Provenance provenance;
  provenance.runtime = runtime;
  provenance.files.emplace();
  provenance.budget.emplace();
  provenance.devices.emplace();
  for (const std::string& name : names) {
    provenance.files->push_back({name, c, b, c + 1});
    (*provenance.budget)[name] = c;
    provenance.devices->push_back({name, runtime});
  }
  provenance.program.emplace();
  for (const std::string& name : names) provenance.program->push_back({name, c, b, c + 1});
  provenance.sequences = a;
  provenance.kv_types = KvTypes{runtime, "|\\\n"};
  provenance.launch_hash = c;
  const ProvenanceTexts texts = to_texts(provenance);
  RC_ASSERT(provenance_from_texts(texts) == provenance);
  RC_ASSERT(to_texts(provenance_from_texts(texts)) == texts);
}

RC_GTEST_PROP(ProvenanceProperty, L19_AnyTextIsReadWithoutHarm, (ProvenanceTexts texts)) {
  const Provenance read = provenance_from_texts(texts);
  RC_ASSERT(provenance_from_texts(to_texts(read)) == read);
}

}  // namespace
}  // namespace berth::core
