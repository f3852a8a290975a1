// L16 as D16 to D18 read it, beyond what redact_test.cc has.

#include <gtest/gtest.h>

#include "supervisor/core/redact.h"

namespace berth::core {
namespace {

TEST(CarriedText, L16_EverySlashIsAPath) {
  EXPECT_EQ(carried_text("see https://a.example/b?c=d for more"), "see <path> for more");
  EXPECT_EQ(carried_text("Loading lab/kestrel-16b requires"), "Loading <path> requires");
  EXPECT_EQ(carried_text("I/O operation on closed file."), "<path> operation on closed file.");
  EXPECT_EQ(carried_text("at C:\\x now"), "at <path> now");
  EXPECT_EQ(carried_text("10 it/s"), "10 <path>");
}

TEST(CarriedText, L16_TheSpanReachesTheLastPath) {
  EXPECT_EQ(carried_text("copy /a to secret place in b/c ok"), "copy <path> ok");
  EXPECT_EQ(carried_text("(/a/b): x"), "<path> x");
  EXPECT_EQ(carried_text("a,/b,c: x"), "<path> x") << "whole tokens go";
}

TEST(CarriedText, L16_TheSpanReachesAModelFileWithBlanks) {
  EXPECT_EQ(carried_text("open /home/My Secret Models/Kestrel 4 Q5.gguf failed"),
            "open <path> failed");
  EXPECT_EQ(carried_text("open /srv/My Models and so on.SafeTensors, then"), "open <path> then");
  EXPECT_EQ(carried_text("open /srv/a b c.py'); next"), "open <path> next");
  EXPECT_EQ(carried_text("open \u201C/srv/a b c.json\u201D now"), "open <path> now");
  EXPECT_EQ(carried_text("x.gguf before /srv/a and after"), "x.gguf before <path> and after");
  EXPECT_EQ(carried_text("no path: model.gguf"), "no path: model.gguf");
  EXPECT_EQ(carried_text("open /srv/a b.exe"), "open <path> b.exe");
}

TEST(CarriedText, L16_TheSpanReachesTheEndOfAQuotation) {
  EXPECT_EQ(carried_text("open '/srv/My Models/tax return' now"), "open <path> now");
  EXPECT_EQ(carried_text("open \"/srv/tax return of Eva\", now"), "open <path> now");
  EXPECT_EQ(carried_text("open path='/srv/tax return' now"), "open <path> now");
  EXPECT_EQ(carried_text("open PosixPath('/srv/tax return') now"), "open <path> now");
  EXPECT_EQ(carried_text("open '/srv/Eva's tax return' now"), "open <path> now");
  EXPECT_EQ(carried_text("open \u201C/srv/tax return\u201D now"), "open <path> now");
  EXPECT_EQ(carried_text("open '/srv/a' and 'b c' now"), "open <path> and 'b c' now");
  EXPECT_EQ(carried_text("open '/srv/never closed"), "open <path> closed");
  EXPECT_EQ(carried_text("Eva's/file and 'b' now"), "<path> and 'b' now");
}

TEST(CarriedText, L16_BlanksStayWhereTheyAre) {
  EXPECT_EQ(carried_text("\ta  /b  c\td "), "a  <path>  c d");
}

TEST(CarriedText, L16_CutsLastAndAppendsNothing) {
  const std::string path = "/" + std::string(400, 'p');
  EXPECT_EQ(carried_text("open " + path + " now"), "open <path> now");
  EXPECT_EQ(carried_text(std::string(298, 'x') + " /a"), std::string(298, 'x') + " <");
  EXPECT_EQ(carried_text(std::string(299, 'x') + " yz"), std::string(299, 'x') + " ");
  EXPECT_EQ(carried_text(std::string(299, 'x') + "🦅"), std::string(299, 'x'));
}

TEST(CarriedText, L16_KeepsTheReplacementCharacter) {
  EXPECT_EQ(carried_text("a\ufffd\u200b\ufff9\U0001ffffb"), "a\ufffdb");
}

}  // namespace
}  // namespace berth::core
