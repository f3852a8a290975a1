#include "supervisor/core/log/log_prefix.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::core {
namespace {

std::string message(std::string_view line) {
  return std::string(line.substr(logger_prefix_length(line)));
}

TEST(LogPrefix, L15_TakesThePrefixesOfKnownLoggers) {
  for (const char* line : {
           "[INFO] it fails",
           "[2026-11-29 10:01:44 TP0] it fails",
           "[rank0] [W1129 10:00:00.123 socket.cpp:752] [c10d] it fails",
           "[a [nested] group] it fails",
           "(EngineCore pid=4711) ERROR 11-29 10:00:07 [core.py:1136] it fails",
           "(RayWorker pid=12, ip=127.0.0.1) it fails",
           "0.00.147.118 E it fails",
           "1.06.520.077 W   it fails",
           "10:45:47-565763 INFO     it fails",
           "2026-11-29 10:00:07,123 ERROR it fails",
           "2026-11-29T10:00:07.123456Z ERROR it fails",
           "2026-11-29T10:00:07+01:00 it fails",
           "2026/11/29 10:00:07 it fails",
           "2026-11-29 10:00:07 +0100 it fails",
           "2026-11-29 10:00:07 UTC [3] it fails",
           "Nov 29 10:00:07 it fails",
           "ERROR:    it fails",
           "ERROR: it fails",
           "error: it fails",
           "WARNING it fails",
           "E it fails",
           "12.5s it fails",
           "12.5ms it fails",
       }) {
    EXPECT_EQ(message(line), "it fails") << line;
  }
}

TEST(LogPrefix, L15_LeavesWhatIsMessage) {
  for (const char* line : {
           "it fails",
           "error loading model: x",
           "Error loading model",
           "fatal signal",
           "(not a process) it fails",
           "[unclosed it fails",
           "[INFO]it fails",
           "127 it fails",
           "4.93s/it it fails",
           "Killed",
           "ERROR:root:it fails",
           "  [INFO] it fails",
           "Nov it fails",
           "main: it fails",
           "",
       }) {
    EXPECT_EQ(message(line), line);
  }
}

TEST(LogPrefix, L15_IsNotTheWholeLine) {
  EXPECT_EQ(message("ERROR"), "ERROR");
  EXPECT_EQ(message("[INFO] ERROR"), "ERROR");
}

}  // namespace
}  // namespace berth::core
