#include "common/event.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "common/json_text.h"
#include "common/log_line.h"
#include "common/wall_time.h"

namespace berth {
namespace {

constexpr WallTime kTime = WallTime(std::chrono::milliseconds(1'796'064'001'123));

Event sample() {
  Event event = events::to_event(events::LoadFailed{.model = "qwen 3",
                                                    .instance = "i",
                                                    .record = "",
                                                    .failure_class = "permanent",
                                                    .reason = "a \"b\"\nc=\\d \x1b[1m",
                                                    .exit = "exit 1",
                                                    .took_ms = -12});
  event.time = kTime;
  return event;
}

TEST(Event, ComesFromTheCatalogue) {
  const Event event = sample();
  EXPECT_EQ(event.name, "load.failed");
  EXPECT_EQ(event.level, Level::kError);
  ASSERT_EQ(event.fields.size(), 7U);
  EXPECT_EQ(event.fields[0].name, "model");
  EXPECT_EQ(std::get<std::int64_t>(event.fields[6].value), -12);
}

TEST(Event, LogfmtIsOneLine) {
  EXPECT_EQ(logfmt(sample()),
            R"(load.failed model="qwen 3" instance=i record="" failure_class=permanent )"
            R"(reason="a \"b\" c=\\d [1m" exit="exit 1" took_ms=-12)");
}

TEST(Event, LogfmtBoundsWhatIsHostile) {
  Event event = sample();
  event.fields[0].value = std::string(1'000'000, 'x');
  EXPECT_LT(logfmt(event).size(), 10'000U);
}

TEST(Event, JsonIsOneObjectInOneLine) {
  Event event = sample();
  event.sequence = 7;
  event.fields.resize(5);
  EXPECT_EQ(json_line(event),
            R"({"time":"2026-11-30T18:40:01.123Z","level":"error","event":"load.failed",)"
            R"("sequence":7,"model":"qwen 3","instance":"i","record":"",)"
            R"("failure_class":"permanent","reason":"a \"b\"\nc=\\d \u001b[1m"})");
}

TEST(Event, JsonIsValidWhateverTheText) {
  std::string out;
  append_json_string(out, std::string("a\xFF\xC3(\0\x7F\xE2\x82\xAC", 9));
  EXPECT_EQ(out, "\"a\xEF\xBF\xBD\xEF\xBF\xBD(\\u0000\\u007f\xE2\x82\xAC\"");
  out.clear();
  append_json_number(out, std::numeric_limits<double>::infinity());
  append_json_number(out, 0.1);
  append_json_number(out, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(out, "null0.1null");
}

TEST(Event, CatalogueIsSound) {
  std::set<std::string_view> names;
  for (const EventInfo& info : event_catalogue()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_NE(info.name.find('.'), std::string_view::npos) << info.name;
    EXPECT_FALSE(info.doc.empty()) << info.name;
    EXPECT_TRUE(info.doc.ends_with('.')) << info.name;
    std::set<std::string_view> fields;
    for (const auto& [field, type] : info.fields) {
      EXPECT_TRUE(fields.insert(field).second) << info.name << " " << field;
      // The fixed members of a JSON line and of the journal.
      for (const std::string_view taken : {"time", "level", "event", "sequence"}) {
        EXPECT_NE(field, taken) << info.name;
      }
      EXPECT_TRUE(type == "text" || type == "integer" || type == "number" || type == "truth");
    }
  }
  EXPECT_TRUE(names.contains("server.listening"));
}

TEST(Event, LevelsHaveNames) {
  EXPECT_EQ(level_name(Level::kDebug), "debug");
  EXPECT_EQ(level_name(Level::kInfo), "info");
  EXPECT_EQ(level_name(Level::kWarning), "warning");
  EXPECT_EQ(level_name(Level::kError), "error");
}

TEST(WallTimeText, IsUtcWithMilliseconds) {
  EXPECT_EQ(format_utc(WallTime{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_utc(kTime), "2026-11-30T18:40:01.123Z");
  EXPECT_EQ(format_utc(WallTime(std::chrono::milliseconds(-1))), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_utc(WallTime(std::chrono::milliseconds(951'782'400'000))),
            "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(format_utc(WallTime::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(format_utc(WallTime::min()), "0000-01-01T00:00:00.000Z");
}

TEST(LogLine, HasTimeLevelAndEvent) {
  Event event = events::to_event(events::ServerStopped{.took_ms = 5});
  event.time = kTime;
  EXPECT_EQ(log_line(event, false), "2026-11-30T18:40:01.123Z info server.stopped took_ms=5");
  const std::string coloured = log_line(event, true);
  EXPECT_NE(coloured.find("\x1b["), std::string::npos);
  EXPECT_TRUE(coloured.ends_with("\x1b[0m took_ms=5")) << coloured;
}

TEST(LogLine, JournalFieldsAreNative) {
  Event event =
      events::to_event(events::ModelBroken{.model = "x", .problem = "two\nlines and an = sign"});
  event.time = kTime;
  EXPECT_EQ(
      journal_fields(event),
      (std::vector<std::string>{"MESSAGE=model.broken model=x problem=\"two lines and an = sign\"",
                                "PRIORITY=4", "BERTH_EVENT=model.broken", "BERTH_MODEL=x",
                                "BERTH_PROBLEM=two\nlines and an = sign"}));
}

TEST(LogLine, KnowsTheJournalsStream) {
  EXPECT_TRUE(names_journal_stream("8:12345", 8, 12'345));
  EXPECT_FALSE(names_journal_stream("8:12345", 8, 1));
  EXPECT_FALSE(names_journal_stream("", 0, 0));
}

}  // namespace
}  // namespace berth
