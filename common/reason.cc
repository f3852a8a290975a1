#include "common/reason.h"

#include <array>
#include <cstddef>

namespace berth {
namespace {

constexpr std::array kReasons = {
#define BERTH_REASON(id, name, http, grpc, retry, sentence) \
  ReasonInfo{name, http, grpc, Retry::retry, sentence},
#include "common/reasons.def"
#undef BERTH_REASON
};

static_assert(static_cast<std::size_t>(Reason::kInternal) + 1 == kReasons.size());

}  // namespace

const ReasonInfo& reason_info(Reason reason) {
  return kReasons.at(static_cast<std::size_t>(reason));
}

std::optional<Reason> reason_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (kReasons.at(i).name == name) return static_cast<Reason>(i);
  }
  return std::nullopt;
}

}  // namespace berth
