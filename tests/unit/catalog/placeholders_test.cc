#include "supervisor/catalog/placeholders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::catalog {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Placeholders, L27_AreWordsInBraces) {
  EXPECT_THAT(placeholders_of("--bind=127.0.0.1:{port} {api_key}"), ElementsAre("api_key", "port"));
  EXPECT_THAT(placeholders_of("{prot}"), ElementsAre("prot"));
  for (const char* const text : {"", "{", "}", "{}", "{port", "port}", "{Port}", "{ port }", "{1}",
                                 "{\"a\":{\"b\":1}}", "{{port}}", "{% if x %}"}) {
    EXPECT_THAT(placeholders_of(text), IsEmpty()) << text;
  }
}

TEST(Placeholders, L27_AreFilledIn) {
  const std::map<std::string, std::string> values = {{"port", "81"}, {"api_key", "{port}"}};
  EXPECT_EQ(fill_placeholders("--bind=:{port}", values), "--bind=:81");
  EXPECT_EQ(fill_placeholders("{port}{port}", values), "8181");
  EXPECT_EQ(fill_placeholders("{{port}}-{port}", values), "{port}-81");
  EXPECT_EQ(fill_placeholders("{{{port}}}", values), "{{port}}");
  EXPECT_EQ(fill_placeholders("{\"a\": {\"b\": {port}}}", values), "{\"a\": {\"b\": 81}}");
  // A value is never looked at again, and what has none stays.
  EXPECT_EQ(fill_placeholders("{api_key}", values), "{port}");
  EXPECT_EQ(fill_placeholders("{socket}", values), "{socket}");
}

}  // namespace
}  // namespace berth::catalog
