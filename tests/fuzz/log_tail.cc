// Any bytes are a log: in whatever pieces they come, the verdict is the same, and what is carried
// of it can be shown to anybody. The first byte says how large the pieces are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "common/text.h"
#include "supervisor/core/log/log_verdict.h"

namespace {

using berth::core::FailureClass;
using berth::core::LogParser;
using berth::core::LogVerdict;

void require(bool truth) {
  if (!truth) std::abort();
}

std::optional<LogVerdict> verdict_in_pieces(std::string_view log, std::size_t piece) {
  LogParser parser;
  std::optional<LogVerdict> verdict;
  const berth::SteadyTime now{};
  while (!log.empty()) {
    auto next = parser.feed(log.substr(0, piece), now);
    require(!next || !verdict);
    if (next) verdict = std::move(next);
    log.remove_prefix(std::min(piece, log.size()));
  }
  auto last = parser.end();
  require(!last || !verdict);
  return last ? last : verdict;
}

void check(const LogVerdict& verdict) {
  constexpr std::size_t kLongest = 300;
  require(verdict.failure_class == FailureClass::kPermanent ||
          verdict.failure_class == FailureClass::kResource ||
          verdict.failure_class == FailureClass::kCrash);
  require(verdict.line > 0);
  require(verdict.reason.size() <= kLongest);
  require(berth::printable_line(verdict.reason, kLongest) == verdict.reason);
  require(verdict.reason.find_first_of("/\\") == std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view log(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = verdict_in_pieces(log, log.size() + 1);
  const auto pieces = verdict_in_pieces(log, std::size_t{data[0]} + 1);
  require(whole.has_value() == pieces.has_value());
  if (!whole) return 0;
  check(*whole);
  require(whole->failure_class == pieces->failure_class && whole->reason == pieces->reason &&
          whole->exception == pieces->exception && whole->line == pieces->line);
  return 0;
}
