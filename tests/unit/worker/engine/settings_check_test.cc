#include "worker/engine/settings_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace berth::worker {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The message, or nothing where the settings are fine.
template <typename Set>
std::string refusal(const Set& set) {
  SamplingSettings settings;
  set(settings);
  const auto checked = check_settings(settings, 100);
  if (checked) return "";
  EXPECT_EQ(checked.error().reason, Reason::kInvalidArgument);
  return checked.error().message;
}

TEST(SettingsCheck, TheDefaultsAreFine) {
  EXPECT_EQ(refusal([](auto&) {}), "");
}

TEST(SettingsCheck, NamesTheSettingItsValueAndItsRange) {
  EXPECT_THAT(refusal([](auto& s) { s.top_p = 1.5F; }),
              HasSubstr("top_p is 1.5; it must be from 0 to 1"));
  EXPECT_THAT(refusal([](auto& s) { s.temperature = kNan; }), HasSubstr("temperature is"));
  EXPECT_THAT(refusal([](auto& s) { s.repetition_penalty = 0; }),
              HasSubstr("repetition_penalty is 0; it must be above 0 and at most 1e+06"));
  EXPECT_EQ(refusal([](auto& s) { s.repetition_penalty = 1e-9F; }), "");
  EXPECT_THAT(refusal([](auto& s) { s.mirostat_tau = kInfinity; }), HasSubstr("mirostat_tau"));
  EXPECT_THAT(refusal([](auto& s) { s.mirostat = 3; }), HasSubstr("mirostat is 3"));
}

TEST(SettingsCheck, Biases) {
  EXPECT_EQ(refusal([](auto& s) { s.logit_bias = {{99, 1.0F}, {0, -kInfinity}}; }), "");
  EXPECT_THAT(refusal([](auto& s) {
                s.logit_bias = {{100, 1.0F}};
              }),
              HasSubstr("token 100; the model has tokens 0 to 99"));
  EXPECT_THAT(refusal([](auto& s) { s.logit_bias = {{-1, 1.0F}}; }), HasSubstr("token -1"));
  EXPECT_THAT(refusal([](auto& s) { s.logit_bias = {{1, kInfinity}}; }), HasSubstr("inf"));
  EXPECT_THAT(refusal([](auto& s) { s.logit_bias = {{1, kNan}}; }), HasSubstr("nan"));
}

TEST(SettingsCheck, Texts) {
  EXPECT_THAT(refusal([](auto& s) { s.dry_breakers = {"a", ""}; }), HasSubstr("dry_breakers[1]"));
  EXPECT_THAT(refusal([](auto& s) {
                s.dry_breakers = {"a", "b", std::string("c\0", 2)};
              }),
              HasSubstr("dry_breakers[2] has a NUL at byte 1"));
  EXPECT_THAT(refusal([](auto& s) { s.dry_breakers.assign(65, "a"); }), HasSubstr("65"));
  EXPECT_THAT(refusal([](auto& s) { s.grammar_triggers = {"a"}; }), HasSubstr("no grammar"));
  EXPECT_THAT(refusal([](auto& s) { s.grammar = std::string(1, '\0'); }), HasSubstr("NUL"));
}

}  // namespace
}  // namespace berth::worker
