#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "tests/stress/call.h"

namespace berth::stress {

// What came of a call of Generate, and what was wrong with it. Fed event by event.
class Observed {
 public:
  Observed(const v1::GenerateRequest& request, const Target& target)
      : request_(request), target_(target) {}

  void on_event(const v1::GenerateEvent& event);
  // After the last event. `trailer`: of `berth-error-bin`.
  void on_end(const grpc::Status& status, std::optional<v1::ErrorDetail> trailer,
              const Manners& manners, std::string_view wrong);

  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  // "stop", "length", "tool_calls", an error's reason, or "cancelled".
  [[nodiscard]] const std::string& result() const { return result_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::optional<v1::Done>& done() const { return done_; }

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  void check_piece(const v1::Token& piece);
  void check_logprobs(const v1::Token& piece);
  void check_calls(const v1::Token& piece);
  void check_done(std::string_view wrong);
  void check_usage(const v1::Usage& usage);
  void check_form();
  void check_text();
  void check_error(std::string_view wrong);
  // A call without a last event.
  void check_silence(const grpc::Status& status, const Manners& manners);

  const v1::GenerateRequest& request_;
  const Target& target_;
  std::vector<std::string> problems_;
  std::string result_;
  std::string text_;
  bool reasoned_ = false;
  std::size_t ids_ = 0;
  std::uint32_t prefilled_ = 0;
  std::vector<v1::ToolCall> calls_;
  std::optional<v1::Done> done_;
  std::optional<v1::ErrorDetail> error_;
};

// The detail that travels in the trailer, if there is one. `problems`: what is wrong with it.
std::vector<std::string> problems_of_error(const v1::ErrorDetail& detail,
                                           const grpc::Status& status);

}  // namespace berth::stress
