#include "supervisor/gateway/grpc/grpc_log.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace berth::gateway {
namespace {

constexpr auto kPeriod = std::chrono::minutes(1);
constexpr std::size_t kMostLines = 10;  // in a period
constexpr std::size_t kMostOfLine = 512;

// Of this program; never destroyed, as gRPC's threads may log until its end.
struct Lines {
  std::mutex mutex;
  std::chrono::steady_clock::time_point begun{};
  std::size_t written = 0;
  std::size_t left_out = 0;
};

Lines& lines() {
  static Lines* const one = new Lines;  // NOLINT(cppcoreguidelines-owning-memory)
  return *one;
}

void write_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  std::fprintf(stderr, "gRPC: %s\n", text.c_str());
}

void on_line(gpr_log_func_args* line) {
  Lines& all = lines();
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(all.mutex);
  if (all.begun == std::chrono::steady_clock::time_point{} || now - all.begun >= kPeriod) {
    if (all.left_out > 0) write_line(std::to_string(all.left_out) + " lines were left out.");
    all.begun = now;
    all.written = 0;
    all.left_out = 0;
  }
  if (all.written == kMostLines) {
    ++all.left_out;
    return;
  }
  ++all.written;
  write_line(std::string(std::string_view(line->message).substr(0, kMostOfLine)));
}

}  // namespace

void bound_grpc_log() {
  gpr_set_log_function(&on_line);
}

}  // namespace berth::gateway
