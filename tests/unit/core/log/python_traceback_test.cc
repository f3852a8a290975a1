#include "supervisor/core/log/python_traceback.h"

#include <gtest/gtest.h>

#include "tests/unit/core/log/log_run.h"

namespace berth::core {
namespace {

using test::said;
using test::verdict_of;

constexpr const char* kHeader = "Traceback (most recent call last):\n";
constexpr const char* kFrame = "  File \"/srv/app/loader.py\", line 88, in load\n    raise x\n";
constexpr const char* kDuring =
    "\nDuring handling of the above exception, another exception occurred:\n\n";
constexpr const char* kCause =
    "\nThe above exception was the direct cause of the following exception:\n\n";

std::string traceback(const std::string& terminal) {
  return std::string(kHeader) + kFrame + terminal + "\n";
}

// All lines with the prefix.
std::string prefixed(const std::string& prefix, const std::string& lines) {
  std::string out;
  std::size_t at = 0;
  while (at < lines.size()) {
    const std::size_t end = lines.find('\n', at);
    out += prefix + lines.substr(at, end - at + 1);
    at = end + 1;
  }
  return out;
}

TEST(Traceback, L13_ATerminalLineCountsOnlyStraightAfterFrames) {
  EXPECT_EQ(said(traceback("ValueError: x")), "permanent ValueError: x");
  EXPECT_EQ(said("ValueError: x\n"), "");
  EXPECT_EQ(said(std::string(kHeader) + "ValueError: x\n"), "") << "no frame";
  EXPECT_EQ(said(std::string(kFrame) + "ValueError: x\n"), "") << "no header";
  EXPECT_EQ(said(std::string(kHeader) + kFrame + "INFO: y\nValueError: x\n"), "");
  EXPECT_EQ(said(traceback("RuntimeError: y") + "ValueError: x\n"), "");
}

TEST(Traceback, L13_BlankLinesKeepTheState) {
  EXPECT_EQ(said(std::string(kHeader) + "\n \t\n" + kFrame + "\n\nValueError: x\n"),
            "permanent ValueError: x");
}

TEST(Traceback, L13_AnyIndentedLineIsAFrame) {
  EXPECT_EQ(said(std::string(kHeader) + " x\nValueError: x\n"), "permanent ValueError: x");
  EXPECT_EQ(said(std::string(kHeader) + "\tx\nValueError: x\n"), "permanent ValueError: x");
}

TEST(Traceback, L13_ChainedExceptionLastLineWins) {
  EXPECT_EQ(said(traceback("KeyError: 'x'") + kDuring + traceback("ValueError: y")),
            "permanent ValueError: y");
  EXPECT_EQ(said(traceback("ValueError: x") + kCause + traceback("ImportError: y")),
            "permanent ImportError: y");
  EXPECT_EQ(said(traceback("ValueError: x") + kDuring + traceback("RuntimeError: y")), "");
  EXPECT_EQ(said(traceback("ValueError: x") + kDuring + traceback("KeyError: y") + kCause +
                 traceback("ValueError: z")),
            "permanent ValueError: z");
  EXPECT_EQ(said(traceback("ValueError: x") +
                 "The above exception was the direct cause of the following exception:\n" +
                 traceback("ImportError: y")),
            "permanent ImportError: y")
      << "without blank lines";
}

TEST(Traceback, L13_AChainingSentenceWithdrawsTheMatch) {
  EXPECT_EQ(said(traceback("ValueError: x") + kDuring), "");
  EXPECT_EQ(said(traceback("ValueError: x") + kDuring + "INFO: went on\n"), "");
  EXPECT_EQ(said(traceback("ValueError: x") + kDuring + kFrame + "ValueError: y\n"), "")
      << "no header";
  EXPECT_EQ(said(traceback("ValueError: x") + "\nDuring handling of the request\n"),
            "permanent ValueError: x");
}

TEST(Traceback, L13_EveryOtherLineEndsTheChain) {
  EXPECT_EQ(said(traceback("ValueError: x") + "and more\n" + kDuring + traceback("KeyError: y")),
            "permanent ValueError: x");
  EXPECT_EQ(said(traceback("ValueError: x") + "  indented\n" + kDuring + traceback("KeyError: y")),
            "permanent ValueError: x");
  EXPECT_EQ(said(traceback("ValueError: x") + traceback("KeyError: y")), "permanent ValueError: x");
}

TEST(Traceback, L13_TextMayStandBeforeTheHeader) {
  EXPECT_EQ(said("[10:01 TP0] Scheduler hit an exception: " + traceback("ValueError: x")),
            "permanent ValueError: x");
  EXPECT_EQ(said("it/s]" + traceback("ValueError: x")), "permanent ValueError: x");
  EXPECT_EQ(said("Loading 'kestrel'" + traceback("ValueError: x")), "permanent ValueError: x")
      << "the quotation is over";
  EXPECT_EQ(said("69%|███ | 9/13 " + traceback("ValueError: x")), "permanent ValueError: x");
  EXPECT_EQ(
      said("ERROR: failed: " + std::string(kHeader) + "no frame\n" + kFrame + "ValueError: x\n"),
      "");
}

TEST(Traceback, L13_ALoggerPrefixIsStrippedFromAllLines) {
  for (const std::string prefix :
       {"(APIServer pid=37366) ", "[rank0]: ", "ERROR 11-29 10:00:07 [core.py:1136] ", "x>"}) {
    EXPECT_EQ(said(prefixed(prefix, traceback("ValueError: x"))), "permanent ValueError: x")
        << prefix;
    EXPECT_EQ(
        said(prefixed(prefix, traceback("KeyError: y") + kDuring + traceback("ValueError: x"))),
        "permanent ValueError: x")
        << prefix << ": a bare prefix is a blank line";
    EXPECT_EQ(
        said(prefixed(prefix, traceback("ValueError: x") + kDuring + traceback("KeyError: y"))), "")
        << prefix;
  }
}

TEST(Traceback, L13_ALineWithoutThePrefixResets) {
  const std::string head = prefixed("[r0] ", std::string(kHeader) + kFrame);
  EXPECT_EQ(said(head + "ValueError: x\n"), "");
  EXPECT_EQ(said(head + "[r1] ValueError: x\n"), "");
  EXPECT_EQ(said(head + "    frame\n[r0] ValueError: x\n"), "");
  EXPECT_EQ(said(head + "\n[r0] ValueError: x\n"), "permanent ValueError: x")
      << "a blank line does not";
  EXPECT_EQ(said(head + "[r0]\n[r0] ValueError: x\n"), "permanent ValueError: x");
  EXPECT_EQ(said(head + "[r0] ValueError: x\n" + kDuring + traceback("KeyError: y")),
            "permanent ValueError: x")
      << "nor does a sentence without it chain";
}

TEST(Traceback, L13_ABarePrefixMayStandBetweenHeaderAndFrames) {
  EXPECT_EQ(said("[r0] " + std::string(kHeader) + "[r0]\n\n" + prefixed("[r0] ", kFrame) +
                 "[r0] ValueError: x\n"),
            "permanent ValueError: x");
}

TEST(Traceback, L13_BelowABareHeaderAPrefixIsAnotherLine) {
  EXPECT_EQ(said(std::string(kHeader) + "[r0]   File\n[r0] ValueError: x\n"), "");
  EXPECT_EQ(said(std::string(kHeader) + kFrame + "[r0] ValueError: x\n"), "");
}

TEST(Traceback, L13_QuotationsAndDrawingsAreNoHeader) {
  for (const std::string before :
       {"  ", "\t", "  + Exception Group ", "[x] + Exception Group ", "| ", "[x]  |", "msg='",
        "{\"error\":\"", "he said \u201C", "b'", "repr: `", "x = ('"}) {
    EXPECT_EQ(said(before + traceback("ValueError: x")), "") << before;
  }
}

TEST(Traceback, L13_AnExceptionGroupIsOpaque) {
  const std::string group =
      "  + Exception Group Traceback (most recent call last):\n"
      "  |   File \"/srv/a.py\", line 1, in a\n"
      "  | ExceptionGroup: two (1 sub-exception)\n"
      "  +-+---------------- 1 ----------------\n"
      "    | Traceback (most recent call last):\n"
      "    |   File \"/srv/a.py\", line 1, in b\n"
      "    | ValueError: x\n"
      "    +------------------------------------\n";
  EXPECT_EQ(said(group), "");
  EXPECT_EQ(said(prefixed("(A pid=1) ", group)), "");
  EXPECT_EQ(said(group + kDuring + traceback("ValueError: x")), "permanent ValueError: x");
  EXPECT_EQ(said(traceback("ValueError: x") + kDuring + group), "");
}

TEST(Traceback, L13_ATerminalLineIsADottedName) {
  EXPECT_EQ(said(traceback("ValueError")), "permanent ValueError");
  EXPECT_EQ(said(traceback("ValueError:")), "permanent ValueError:");
  EXPECT_EQ(said(traceback("ValueError:   x")), "permanent ValueError:   x");
  EXPECT_EQ(said(traceback("ValueError:x")), "");
  EXPECT_EQ(said(traceback("ValueError x")), "");
  EXPECT_EQ(said(traceback("ValueError. x")), "");
  EXPECT_EQ(said(traceback("my ValueError: x")), "");
  EXPECT_EQ(said(traceback("'ValueError: x'")), "");
}

TEST(Traceback, L14_TheNameIsComparedWhole) {
  for (const char* name :
       {"pkg.ValueError", "ValueErrors", "MyValueError", "valueerror", "builtins.ValueError",
        "ValueError.sub", "m.f.<locals>.ValueError", "pydantic_core._pydantic_core.ValidationError",
        "KeyboardInterrupt", "RuntimeError", "OSError", "FileNotFoundError", "SafetensorError",
        "BrokenPipeError", "ConnectionResetError", "AssertionError"}) {
    EXPECT_EQ(said(traceback(std::string(name) + ": x")), "") << name;
    EXPECT_EQ(said(traceback(name)), "") << name;
  }
  for (const char* name : {"ValueError", "ModuleNotFoundError", "ImportError"}) {
    const auto verdict = verdict_of(traceback(std::string(name) + ": x"));
    ASSERT_TRUE(verdict.has_value()) << name;
    EXPECT_EQ(verdict->exception, name);
    EXPECT_EQ(verdict->failure_class, FailureClass::kPermanent);
    EXPECT_EQ(verdict->line, 4U);
  }
}

TEST(Traceback, L14_TheSetIsConfigurable) {
  const std::vector<std::string> fatal = {"RuntimeError", "pkg.LoadError"};
  EXPECT_EQ(said(traceback("RuntimeError: x"), fatal), "permanent RuntimeError: x");
  EXPECT_EQ(said(traceback("pkg.LoadError: x"), fatal), "permanent pkg.LoadError: x");
  EXPECT_EQ(said(traceback("LoadError: x"), fatal), "");
  EXPECT_EQ(said(traceback("ValueError: x"), fatal), "");
  EXPECT_EQ(said(traceback("MemoryError"), {}), "resource MemoryError") << "beside any set";
}

TEST(Traceback, L15_OutOfMemoryNamesAndTexts) {
  for (const char* terminal :
       {"MemoryError", "MemoryError: Unable to allocate 3 GiB", "torch.OutOfMemoryError: CUDA out",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.", "RuntimeError: CUDA out of memory. x",
        "RuntimeError: CUDA error: out of memory",
        "torch.AcceleratorError: CUDA error: out of memory",
        "RuntimeError: HIP out of memory. Tried", "RuntimeError: HIP error: out of memory",
        "ValueError: CUDA out of memory."}) {
    EXPECT_EQ(said(traceback(terminal)), std::string("resource ") + terminal);
  }
  for (const char* terminal :
       {"RuntimeError: Insufficient VRAM", "RuntimeError: x CUDA out of memory",
        "pkg.MemoryError: x", "OutOfMemoryError: x",
        "RuntimeError: CUDA error: invalid argument"}) {
    EXPECT_EQ(said(traceback(terminal)), "") << terminal;
  }
}

TEST(Traceback, L15_ATakenAddressIsACrash) {
  EXPECT_EQ(said(traceback("OSError: [Errno 98] Address already in use")),
            "crash OSError: [Errno 98] Address already in use");
  EXPECT_EQ(said(traceback("OSError: [Errno 98] error while attempting to bind on address "
                           "('0.0.0.0', 8000): address already in use")),
            "crash OSError: [Errno 98] error while attempting to bind on address "
            "('0.0.0.0', 8000): address already in use");
  EXPECT_EQ(said(traceback("OSError: [Errno 5] x")), "");
}

TEST(Traceback, L13_WhatSaysItselfThatItWasSurvivedGivesNoVerdict) {
  for (const std::string mark :
       {"--- Logging error ---\n", "Exception ignored in: <function A.__del__ at 0x7f>\n",
        "Exception ignored while calling deallocator:\n", "[INFO] --- Logging error ---\n",
        "69%|x| --- Logging error ---\n", "(A pid=1) Exception ignored in: <x>\n"}) {
    EXPECT_EQ(said(mark + traceback("ValueError: x")), "") << mark;
    EXPECT_EQ(said(mark + "\n" + traceback("ValueError: x")), "") << mark;
    EXPECT_EQ(said(mark + traceback("KeyError: y") + kDuring + traceback("ValueError: x")), "")
        << mark << "nor does its chain";
    EXPECT_EQ(said(mark + traceback("MemoryError")), "") << mark;
    EXPECT_EQ(said(mark + traceback("ValueError: x") + traceback("ValueError: y")),
              "permanent ValueError: y")
        << mark << "but the next traceback does";
    EXPECT_EQ(said(mark + "INFO: y\n" + traceback("ValueError: x")), "permanent ValueError: x")
        << mark << "is not straight before it";
  }
}

TEST(Traceback, L14_HandlersThreadsAndTasksAreOurWork) {
  for (const std::string mark :
       {"Exception in thread Thread-1 (load):\n", "ERROR:    Exception in ASGI application\n",
        "Task exception was never retrieved\n", "Process SpawnProcess-1:\n"}) {
    EXPECT_EQ(said(mark + traceback("ValueError: x")), "permanent ValueError: x") << mark;
  }
}

TEST(Traceback, L13_TwoTracebacksInEachOther) {
  EXPECT_EQ(said(std::string(kHeader) + kFrame + traceback("ValueError: x")),
            "permanent ValueError: x")
      << "a header starts anew";
  EXPECT_EQ(said(std::string(kHeader) + kFrame + "ERROR: " + traceback("ValueError: x")),
            "permanent ValueError: x")
      << "a header with the form of a terminal line, too";
}

TEST(Traceback, L15_ANativeLineMayStandStraightAfterFrames) {
  EXPECT_EQ(said(std::string(kHeader) + kFrame +
                 "ggml_vulkan: Device memory allocation of size 5 failed.\n"),
            "resource ggml_vulkan: Device memory allocation of size 5 failed.");
  EXPECT_EQ(said(std::string(kHeader) + kFrame + "Fatal Python error: Aborted\n"),
            "crash Fatal Python error: Aborted");
}

}  // namespace
}  // namespace berth::core
