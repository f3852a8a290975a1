#include "common/reason.h"

#include <array>
#include <cstddef>

#include "common/named_rows.h"

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
  return value_named<Reason>(kReasons, name);
}

}  // namespace berth
