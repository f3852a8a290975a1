#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/chat_template_names.h"
#include "worker/engine/llama_templates.h"

namespace berth::worker {
namespace {

// berthd refuses every other name with the configuration: one that is missing in its list could
// never be used.
TEST(TemplateNames, TheListOfTheConfigurationIsLibllamas) {
  auto names = llama_builtin_templates().names();
  std::sort(names.begin(), names.end());
  const auto built = chat_template_names();
  const std::vector<std::string> listed(built.begin(), built.end());
  EXPECT_EQ(listed, names);
}

}  // namespace
}  // namespace berth::worker
