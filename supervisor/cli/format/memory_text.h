#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "berth/v1/admin.pb.h"

namespace berth::cli {

// "600 MiB of host and 1.2 GiB of GPU-8f6a"; nothing: "-".
std::string amounts_text(const google::protobuf::RepeatedPtrField<v1::DomainAmount>& amounts);
std::string charge_text(const google::protobuf::RepeatedPtrField<v1::DomainCharge>& charge);

// Where the numbers of a charge come from: "measured", "estimated ± 64 MiB", "weights, KV measured;
// overhead estimated ± 16 MiB"; empty: not known.
std::string basis_text(const v1::DomainCharge& charge);

// A domain's memory as a bar of `columns` signs, in this order: w weights, k KV, c working memory,
// o overhead, b kept sessions, . free for models, - not for models, f others' programs. What there
// is has at least one sign, as far as there are enough.
std::string memory_bar(const v1::DomainState& domain, std::size_t columns);
inline constexpr std::string_view kMemoryBarLegend =
    "w weights  k KV  c computing  o overhead  b kept sessions  . free  - not for models  "
    "f other programs";

// "for models that clients use": what ParkFor's names mean, and "check".
std::string waits_for_text(const std::string& waits_for);

}  // namespace berth::cli
