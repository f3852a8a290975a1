#include "supervisor/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace berth::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const Model> model(std::string name, std::vector<std::string> aliases = {}) {
  Model made;
  made.name = std::move(name);
  made.aliases = std::move(aliases);
  return std::make_shared<const Model>(std::move(made));
}

TEST(Catalog, FindsByNameAndByAlias) {
  const Catalog catalog({model("zeta", {"gpt-4o-mini"}), model("alpha"), model("mid", {"m"})});
  EXPECT_EQ(catalog.find("alpha").value()->name, "alpha");
  EXPECT_EQ(catalog.find("gpt-4o-mini").value()->name, "zeta");
  EXPECT_EQ(catalog.find("m").value()->name, "mid");
  std::vector<std::string> names;
  for (const auto& each : catalog.models()) names.push_back(each->name);
  EXPECT_THAT(names, ElementsAre("alpha", "mid", "zeta"));
}

TEST(Catalog, ANameWinsOverAnAlias) {
  const Catalog catalog({model("a", {"b"}), model("b")});
  EXPECT_EQ(catalog.find("b").value()->name, "b");
}

TEST(Catalog, ACopyWorksWithoutItsOriginal) {
  auto original =
      std::make_unique<Catalog>(std::vector<std::shared_ptr<const Model>>{model("a", {"alias"})});
  const Catalog copy = *original;
  original.reset();
  EXPECT_EQ(copy.find("alias").value()->name, "a");
}

TEST(Catalog, OffersTheNearestNames) {
  const Catalog catalog({model("qwen3-8b", {"gpt-4o-mini"}), model("qwen3-4b"), model("gemma")});
  const auto missing = catalog.find("qwen3-7b");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, Reason::kUnknownModel);
  EXPECT_THAT(missing.error().message, HasSubstr("'qwen3-7b'"));
  EXPECT_THAT(missing.error().message, HasSubstr("did you mean 'qwen3-4b' or 'qwen3-8b'?"));
  ASSERT_NE(missing.error().extras, nullptr);
  EXPECT_EQ(missing.error().extras->param, "model");
  EXPECT_THAT(missing.error().extras->suggestions, ElementsAre("qwen3-4b", "qwen3-8b"));

  const auto alias = catalog.find("gpt4o-mini");
  ASSERT_FALSE(alias);
  EXPECT_THAT(alias.error().extras->suggestions, ElementsAre("gpt-4o-mini"));
}

TEST(Catalog, SaysWhatToDoWhereNothingIsNear) {
  EXPECT_THAT(Catalog().find("x").error().message, HasSubstr("catalogue is empty"));
  EXPECT_THAT(Catalog({model("gemma")}).find("zzzzzz").error().message,
              HasSubstr("`berth models`"));
}

TEST(Catalog, AHostileNameIsShownShortAndClean) {
  const Catalog catalog({model("gemma")});
  const auto missing = catalog.find("\x1b[31m\xff" + std::string(100'000, 'x'));
  ASSERT_FALSE(missing);
  EXPECT_LT(missing.error().message.size(), 300U);
  EXPECT_EQ(missing.error().message.find('\x1b'), std::string::npos);
}

TEST(ServedContext, IsTheConfiguredOneElseTheDeclaredUpToTheLimit) {
  ModelSettings automatic;
  EXPECT_EQ(served_context(automatic, 8192, 32768), 8192U);
  EXPECT_EQ(served_context(automatic, 131072, 32768), 32768U);
  EXPECT_EQ(served_context(automatic, 0, 32768), 4096U);
  EXPECT_EQ(served_context(automatic, 0, 2048), 2048U);
  EXPECT_EQ(served_context(automatic, 15, 32768), 16U);  // a worker takes no less
  EXPECT_EQ(served_context(automatic, 16, 32768), 16U);
  ModelSettings configured;
  configured.context = 65536;
  EXPECT_EQ(served_context(configured, 8192, 32768), 65536U);
}

}  // namespace
}  // namespace berth::catalog
