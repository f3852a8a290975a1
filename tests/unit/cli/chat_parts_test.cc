#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "supervisor/cli/chat/conversation.h"
#include "supervisor/cli/chat/history_file.h"
#include "supervisor/cli/chat/line_source.h"
#include "supervisor/cli/chat/settings.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TemporaryDirectory;
using test::TestProgram;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  ::stat(path.c_str(), &status);
  return status.st_mode & 07777U;
}

// --- conversation

TEST(Conversation, IsSentAsMessages) {
  Conversation conversation;
  conversation.set_system("Be brief.");
  ASSERT_TRUE(conversation.add({"user", "Hi \"you\"\n"}));
  ASSERT_TRUE(conversation.add({"assistant", "Hel", true}));
  const auto sent = boost::json::parse(conversation.messages_json()).as_array();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].at("role").as_string(), "system");
  EXPECT_EQ(sent[1].at("content").as_string(), "Hi \"you\"\n");
  EXPECT_EQ(sent[2].at("content").as_string(), "Hel");
  // The mark is ours, and no server knows it.
  EXPECT_FALSE(sent[2].as_object().contains("interrupted"));
}

TEST(Conversation, SurvivesAFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/chat.json";
  Conversation conversation;
  conversation.set_system("Système");
  ASSERT_TRUE(conversation.add({"user", "Hi"}));
  ASSERT_TRUE(conversation.add({"assistant", "Hel", true}));
  ASSERT_TRUE(conversation.save(path, "demo"));
  EXPECT_EQ(mode_of(path), 0600U);
  const auto loaded = Conversation::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->system(), "Système");
  ASSERT_EQ(loaded->messages().size(), 2U);
  EXPECT_TRUE(loaded->messages()[1].interrupted);
  EXPECT_FALSE(loaded->messages()[0].interrupted);
  // Saved again over itself, and nothing else is left lying about.
  ASSERT_TRUE(loaded->save(path, "demo"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Conversation, NeverReplacesAFileThatIsNone) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/thesis.txt";
  std::ofstream(path) << "ten years of work";
  const auto saved = Conversation().save(path, "demo");
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().reason, Reason::kConflict);
  EXPECT_EQ(read_file(path), "ten years of work");
}

TEST(Conversation, SaysWhatIsWrongWithAFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/chat.json";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a saved conversation"},
      {"{", "not a saved conversation"},
      {"[]", "no key berth_chat"},
      {R"({"berth_chat":2,"messages":[]})", "version is not 1"},
      {R"({"berth_chat":1})", "no messages"},
      {R"({"berth_chat":1,"messages":[1]})", "message 1 is no object"},
      {R"({"berth_chat":1,"messages":[{"role":"user"}]})", "message 1 has no content"},
      {R"({"berth_chat":1,"messages":[{"role":"tool","content":""}]})", "role other than"},
      {R"({"berth_chat":1,"messages":[{"role":"user","content":"a"},)"
       R"({"role":"system","content":"b"}]})",
       "not the first"},
  };
  for (const auto& [text, expected] : cases) {
    std::ofstream(path, std::ios::trunc) << text;
    const auto loaded = Conversation::load(path);
    ASSERT_FALSE(loaded) << text;
    EXPECT_NE(loaded.error().message.find(expected), std::string::npos) << loaded.error().message;
  }
  EXPECT_EQ(Conversation::load(directory.path() + "/none").error().reason, Reason::kNotFound);
  EXPECT_NE(Conversation::load(directory.path()).error().message.find("no regular file"),
            std::string::npos);
}

TEST(Conversation, UnwritablePlaceIsAClearError) {
  const auto saved = Conversation().save("/nonexistent/chat.json", "demo");
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find("cannot write /nonexistent/chat.json"), std::string::npos);
}

// --- history

TEST(HistoryFile, KeepsEntriesOverProgramsAndPrivately) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/state/berth/history";
  {
    HistoryFile history(path);
    EXPECT_TRUE(history.problem().empty());
    history.add("one");
    history.add("two\nlines \\ here");
    history.add("two\nlines \\ here");
    history.add("   ");
  }
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(mode_of(directory.path() + "/state/berth"), 0700U);
  EXPECT_EQ(HistoryFile(path).entries(), (std::vector<std::string>{"one", "two\nlines \\ here"}));
}

TEST(HistoryFile, IsBounded) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/b/history";
  {
    HistoryFile history(path);
    for (int i = 0; i < 1500; ++i) history.add("entry " + std::to_string(i));
    history.add(std::string(HistoryFile::kMostEntryBytes + 1, 'x'));
  }
  const HistoryFile again(path);
  EXPECT_EQ(again.entries().size(), HistoryFile::kMostEntries);
  EXPECT_EQ(again.entries().back(), "entry 1499");
  const std::string text = read_file(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1000);
  {
    HistoryFile history(path);
    for (int i = 0; i < 100; ++i) {
      history.add(std::to_string(i) + std::string(HistoryFile::kMostEntryBytes - 10, 'y'));
    }
  }
  const HistoryFile bytes(path);
  EXPECT_LE(std::filesystem::file_size(path), HistoryFile::kMostBytes);
  EXPECT_EQ(bytes.entries().back().substr(0, 3), "99y");
}

TEST(HistoryFile, WhatCannotBeUsedIsAProblemAndNoFailure) {
  EXPECT_TRUE(HistoryFile("").problem().empty());
  HistoryFile nowhere("/dev/null/berth/history");
  EXPECT_FALSE(nowhere.problem().empty());
  nowhere.add("kept for this program");
  EXPECT_EQ(nowhere.entries().size(), 1U);
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() + "/b/history");
  EXPECT_NE(HistoryFile(directory.path() + "/b/history").problem().find("regular file"),
            std::string::npos);
}

RC_GTEST_PROP(HistoryFile, GivesBackWhatItGot, ()) {
  const TemporaryDirectory directory;
  const auto entry =
      *rc::gen::map(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\\n\nz ä"))),
                    [](const std::string& text) { return "x" + text; });
  HistoryFile(directory.path() + "/b/history").add(entry);
  const HistoryFile again(directory.path() + "/b/history");
  RC_ASSERT(again.entries().size() == 1U);
  RC_ASSERT(again.entries().front() == entry);
}

TEST(HistoryFile, LiesInTheStateDirectory) {
  TestProgram program;
  EXPECT_EQ(history_path(program.environment), "");
  program.variables["HOME"] = "/h";
  EXPECT_EQ(history_path(program.environment), "/h/.local/state/berth/history");
  program.variables["XDG_STATE_HOME"] = "/s";
  EXPECT_EQ(history_path(program.environment), "/s/berth/history");
}

// --- messages of several lines

class ScriptedLines : public LineSource {
 public:
  explicit ScriptedLines(std::deque<Line> lines) : lines_(std::move(lines)) {}
  Line read(const std::string& prompt) override {
    prompts.push_back(prompt);
    if (lines_.empty()) return {Line::Kind::kEnd, {}};
    Line line = lines_.front();
    lines_.pop_front();
    return line;
  }
  void remember(const std::string& entry) override { remembered.push_back(entry); }

  std::vector<std::string> prompts;
  std::vector<std::string> remembered;

 private:
  std::deque<Line> lines_;
};

Line text(std::string value) {
  return {Line::Kind::kText, std::move(value)};
}

TEST(MessageReader, OneLineIsAMessage) {
  ScriptedLines lines({text("hello")});
  EXPECT_EQ(MessageReader(lines).next().text, "hello");
  EXPECT_EQ(lines.remembered, (std::vector<std::string>{"hello"}));
}

TEST(MessageReader, QuotesEncloseLines) {
  ScriptedLines lines({text("\"\"\""), text("a"), text(""), text("b \\"), text("\"\"\""),
                       text("\"\"\"one\"\"\""), text("\"\"\"x"), text("y\"\"\"")});
  MessageReader reader(lines);
  EXPECT_EQ(reader.next().text, "a\n\nb \\");
  EXPECT_EQ(lines.prompts, (std::vector<std::string>{">>> ", "... ", "... ", "... ", "... "}));
  EXPECT_EQ(reader.next().text, "one");
  EXPECT_EQ(reader.next().text, "x\ny");
  // Called back from the history it is the same message again.
  EXPECT_EQ(lines.remembered.front(), "\"\"\"\na\n\nb \\\n\"\"\"");
}

TEST(MessageReader, BackslashGoesOn) {
  ScriptedLines lines({text("a\\"), text("b\\"), text("c")});
  EXPECT_EQ(MessageReader(lines).next().text, "a\nb\nc");
}

TEST(MessageReader, PasteOfSeveralLinesIsOneMessage) {
  ScriptedLines lines({text("a\nb\n\nc")});
  EXPECT_EQ(MessageReader(lines).next().text, "a\nb\n\nc");
}

TEST(MessageReader, InterruptDropsWhatWasBegun) {
  ScriptedLines lines({text("\"\"\""), text("a"), {Line::Kind::kInterrupt, {}}, text("b")});
  MessageReader reader(lines);
  EXPECT_EQ(reader.next().kind, Line::Kind::kInterrupt);
  EXPECT_EQ(reader.next().text, "b");
  EXPECT_EQ(lines.remembered, (std::vector<std::string>{"b"}));
}

// --- settings

TEST(Settings, AreCheckedWithTheirRange) {
  SamplingOptions sampling;
  ASSERT_TRUE(change_setting(sampling, "temperature", "0.5"));
  EXPECT_EQ(sampling.temperature, 0.5F);
  ASSERT_TRUE(change_setting(sampling, "temperature", "default"));
  EXPECT_FALSE(sampling.temperature);
  ASSERT_TRUE(change_setting(sampling, "top_k", "0"));
  ASSERT_TRUE(change_setting(sampling, "top_p", "1"));
  ASSERT_TRUE(change_setting(sampling, "seed", "4294967295"));
  ASSERT_TRUE(change_setting(sampling, "max_tokens", "1"));
  EXPECT_EQ(describe_settings(sampling),
            "temperature default\ntop_k       0\ntop_p       1\nseed        4294967295\n"
            "max_tokens  1");
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"temperature", "nan"},
           {"temperature", "-1"},
           {"temperature", "101"},
           {"temperature", "warm"},
           {"temperature", ""},
           {"temperature", "1x"},
           {"top_p", "0"},
           {"top_p", "1.1"},
           {"top_p", "inf"},
           {"top_k", "-1"},
           {"top_k", "1.5"},
           {"seed", "4294967296"},
           {"max_tokens", "0"},
           {"heat", "1"},
       }) {
    EXPECT_FALSE(change_setting(sampling, name, value)) << name << " " << value;
  }
  EXPECT_NE(change_setting(sampling, "heat", "1").error().message.find("temperature, top_k"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::cli
