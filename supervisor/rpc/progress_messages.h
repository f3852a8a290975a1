#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "berth/v1/inference.pb.h"

namespace berth::rpc {

// What a waiting stream shows, in Inference and Admin alike.
v1::Loading to_loading(const std::string& phase, const std::string& waits_for, float fraction,
                       std::optional<std::chrono::milliseconds> eta);
v1::Queued to_queued(std::uint32_t position, std::optional<std::chrono::milliseconds> eta);

}  // namespace berth::rpc
