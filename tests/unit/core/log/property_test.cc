#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/text.h"
#include "tests/unit/core/log/log_run.h"

namespace berth::core {
namespace {

using test::kPause;
using test::LogRun;

// Parts of logs that mean something to the parser, so that random logs reach its states.
const std::vector<std::string> kParts = {
    "Traceback (most recent call last):\n",
    "[r0] Traceback (most recent call last):\n",
    "  File \"/srv/a b/c.py\", line 1\n",
    "[r0]   File \"x\"\n",
    "[r0] ",
    "ValueError: bad /srv/a b.gguf\n",
    "MemoryError\n",
    "RuntimeError: x\n",
    "During handling of the above exception, another exception occurred:\n",
    "The above exception was the direct cause of the following exception:\n",
    "--- Logging error ---\n",
    "alloc_tensor_range: failed to allocate CUDA0 buffer of size 5\n",
    "x: allocation failed, retrying\n",
    "llama_model_load: error loading model: unknown model architecture: 'k'\n",
    "/a/b.c:3: GGML_ASSERT(x) failed\n",
    "INFO: loading\n",
    "\n",
    " ",
    "\r",
    "\x1b[31m",
    "\x1b]0;x",
    "\x07",
    "\xff",
    "\xe2\x82",
    "ä",
    "'",
    "|",
};

rc::Gen<std::string> log_of_parts() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::oneOf(
                          rc::gen::elementOf(kParts), rc::gen::elementOf(kParts),
                          rc::gen::elementOf(kParts), rc::gen::string<std::string>())),
                      [](const std::vector<std::string>& parts) {
                        std::string log;
                        for (const std::string& part : parts) log += part;
                        return log;
                      });
}

void check(const std::optional<LogVerdict>& verdict) {
  if (!verdict) return;
  RC_ASSERT(verdict->reason.size() <= 300U);
  RC_ASSERT(!first_invalid_utf8(verdict->reason).has_value());
  RC_ASSERT(printable_line(verdict->reason, 300) == verdict->reason);
  RC_ASSERT(verdict->reason.find_first_of("/\\") == std::string::npos);
  RC_ASSERT(verdict->line > 0U);
  RC_ASSERT(verdict->failure_class == FailureClass::kPermanent ||
            verdict->failure_class == FailureClass::kResource ||
            verdict->failure_class == FailureClass::kCrash);
}

RC_GTEST_PROP(LogParserProperty, L12_PiecesChangeNoVerdict, ()) {
  const std::string log = *log_of_parts();
  LogRun whole;
  whole.write(log);
  whole.wait(kPause);
  check(whole.verdict());

  LogRun pieces;
  std::size_t at = 0;
  while (at < log.size()) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 40);
    pieces.write(std::string_view(log).substr(at, size));
    at += size;
  }
  pieces.wait(kPause);
  RC_ASSERT(pieces.verdict() == whole.verdict());

  LogRun bytes;
  for (const char c : log) bytes.write({&c, 1});
  bytes.end();
  RC_ASSERT(bytes.verdict() == whole.verdict());
}

RC_GTEST_PROP(LogParserProperty, L16_AnyBytesAreSafe, ()) {
  LogRun run;
  const auto chunks = *rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>());
  for (const std::string& chunk : chunks) {
    run.write(chunk);
    run.wait(std::chrono::milliseconds(*rc::gen::inRange(0, 150)));
  }
  run.end();
  check(run.verdict());
}

RC_GTEST_PROP(LogParserProperty, L13_AHoldIsShort, ()) {
  LogRun run;
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kParts));
  for (const std::string& part : parts) {
    run.write(part);
    const auto due = run.parser().hold_until();
    if (due) RC_ASSERT(*due <= run.now() + LogParser::kHold);
    run.wait(std::chrono::milliseconds(*rc::gen::inRange(0, 99)));
  }
  run.wait(kPause);
  RC_ASSERT(!run.parser().hold_until().has_value());
}

}  // namespace
}  // namespace berth::core
