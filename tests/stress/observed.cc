#include "tests/stress/observed.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <set>

#include "common/text.h"

namespace berth::stress {
namespace {

constexpr std::size_t kMessageBytes = 16U << 10U;

// What a worker may answer to any request, whatever it is like. `internal` and `conflict` are not.
bool may_be_answered(const std::string& reason) {
  static const std::set<std::string> kReasons = {"invalid_argument", "window_exceeded", "not_chat",
                                                 "template_failed",  "queue_full",      "deadline"};
  return kReasons.contains(reason);
}

bool is_json(const std::string& text, bool object) {
  boost::json::parse_options options;
  options.max_depth = 1000;
  boost::json::error_code error;
  const auto value = boost::json::parse(text, error, {}, options);
  return !error && (!object || value.is_object());
}

bool starts_with(const std::string& text, std::string_view start) {
  return std::string_view(text).substr(0, start.size()) == start;
}

// Whether "wrong" says something that no worker may overlook.
bool must_be_refused(std::string_view wrong) {
  return !wrong.empty() && wrong != "format" && wrong != "chat";
}

}  // namespace

std::vector<std::string> problems_of_error(const v1::ErrorDetail& detail,
                                           const grpc::Status& status) {
  std::vector<std::string> problems;
  if (!may_be_answered(detail.reason())) problems.push_back("the reason " + detail.reason());
  if (detail.message().empty() || detail.message().size() > kMessageBytes) {
    problems.push_back("a message of " + std::to_string(detail.message().size()) + " bytes");
  }
  if (detail.message() != status.error_message()) {
    problems.push_back("the status says \"" + status.error_message() + "\", the error \"" +
                       detail.message() + "\"");
  }
  if (detail.reason() == "window_exceeded" && detail.needed() <= detail.limit()) {
    problems.push_back("needs " + std::to_string(detail.needed()) + " of " +
                       std::to_string(detail.limit()));
  }
  return problems;
}

void Observed::on_event(const v1::GenerateEvent& event) {
  if (done_ || error_) problem("an event after the last");
  switch (event.event_case()) {
    case v1::GenerateEvent::kPrefill:
      if (event.prefill().done() > event.prefill().total() ||
          event.prefill().total() >= target_.window) {
        problem("prefill " + event.prefill().ShortDebugString());
      }
      if (event.prefill().done() < prefilled_) problem("prefill goes back");
      prefilled_ = event.prefill().done();
      if (ids_ > 0) problem("prefill after a token");
      break;
    case v1::GenerateEvent::kToken:
      check_piece(event.token());
      break;
    case v1::GenerateEvent::kDone:
      done_ = event.done();
      break;
    case v1::GenerateEvent::kError:
      error_ = event.error();
      break;
    default:
      problem("an event that no worker sends: " + event.ShortDebugString());
  }
}

void Observed::check_piece(const v1::Token& piece) {
  text_ += piece.text();
  reasoned_ = reasoned_ || !piece.reasoning().empty();
  ids_ += static_cast<std::size_t>(piece.ids_size());
  if (first_invalid_utf8(piece.text())) problem("a text that is not UTF-8");
  if (first_invalid_utf8(piece.reasoning())) problem("reasoning that is not UTF-8");
  if (piece.text().empty() && piece.reasoning().empty() && piece.ids().empty() &&
      piece.tool_calls().empty()) {
    problem("an empty piece");
  }
  for (const auto id : piece.ids()) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= target_.vocabulary) problem("a strange token");
  }
  check_logprobs(piece);
  check_calls(piece);
}

void Observed::check_logprobs(const v1::Token& piece) {
  if (piece.logprobs_size() != (request_.has_top_logprobs() ? piece.ids_size() : 0)) {
    problem(std::to_string(piece.logprobs_size()) + " log probabilities for " +
            std::to_string(piece.ids_size()) + " tokens");
    return;
  }
  const auto wanted = std::min<std::uint32_t>(request_.top_logprobs(), target_.vocabulary);
  for (int i = 0; i < piece.logprobs_size(); ++i) {
    const auto& entry = piece.logprobs(i);
    if (entry.chosen().id() != piece.ids(i)) problem("a log probability of another token");
    if (!(entry.chosen().logprob() <= 0) || !std::isfinite(entry.chosen().logprob())) {
      problem("a log probability of " + std::to_string(entry.chosen().logprob()));
    }
    if (static_cast<std::uint32_t>(entry.top_size()) != wanted) {
      problem(std::to_string(entry.top_size()) + " of the likeliest instead of " +
              std::to_string(wanted));
    }
    float last = 0;
    for (const auto& other : entry.top()) {
      if (!(other.logprob() <= last)) problem("the likeliest are not in their order, or above 0");
      last = other.logprob();
    }
    if (wanted > 0 && entry.chosen().logprob() > entry.top(0).logprob()) {
      problem("a token that is likelier than the likeliest");
    }
  }
}

void Observed::check_calls(const v1::Token& piece) {
  for (const auto& call : piece.tool_calls()) {
    if (first_invalid_utf8(call.arguments())) problem("arguments that are not UTF-8");
    if (call.index() == calls_.size()) {
      if (call.id().empty() || call.name().empty()) problem("a call without id or name");
      calls_.push_back(call);
    } else if (call.index() + 1 == calls_.size()) {
      if (!call.id().empty() || !call.name().empty()) problem("a second id or name of a call");
      calls_.back().mutable_arguments()->append(call.arguments());
    } else {
      problem("call " + std::to_string(call.index()) + " after " + std::to_string(calls_.size()));
    }
  }
}

void Observed::on_end(const grpc::Status& status, std::optional<v1::ErrorDetail> trailer,
                      const Manners& manners, std::string_view wrong) {
  if (done_ && error_) problem("done and an error");
  if (done_) {
    result_ = done_->finish_reason();
    // A call that is cancelled after its last event may have either status.
    if (!status.ok() && !manners.cancel_after && !manners.deadline) {
      problem("done, and the status " + status.error_message());
    }
    check_done(wrong);
  } else if (error_) {
    result_ = error_->reason();
    if (status.ok()) problem("an error, and the status OK");
    if (trailer && trailer->SerializeAsString() != error_->SerializeAsString()) {
      problem("the trailer says " + trailer->ShortDebugString());
    }
    // A cancelled call may lose its trailer.
    if (!trailer && !manners.cancel_after && !manners.deadline) problem("no trailer");
    if (trailer) {
      for (auto& text : problems_of_error(*error_, status)) problem(std::move(text));
    }
    check_error(wrong);
  } else {
    check_silence(status, manners);
  }
}

void Observed::check_silence(const grpc::Status& status, const Manners& manners) {
  if (status.ok()) {
    problem("neither done nor an error, and the status OK");
  } else if (status.error_code() == grpc::StatusCode::CANCELLED && manners.cancel_after) {
    result_ = "cancelled";
  } else if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && manners.deadline) {
    result_ = "client's deadline";
  } else {
    result_ = "status " + std::to_string(status.error_code());
    problem("neither done nor an error: " + std::to_string(status.error_code()) + " " +
            status.error_message());
  }
}

void Observed::check_error(std::string_view wrong) {
  const auto& param = error_->param();
  if (starts_with(param, "sampling.") && param != "sampling.ignore_eos" && wrong != "sampling") {
    problem("refuses good sampling: " + error_->message());
  }
  for (const auto* const name : {"stop", "top_logprobs", "tokens", "prompt", "cache_scope"}) {
    if (starts_with(param, name) && !starts_with(param, wrong.empty() ? "?" : wrong)) {
      problem("refuses a good " + std::string(name) + ": " + error_->message());
    }
  }
  if (error_->reason() == "deadline" && !request_.has_deadline_ms()) {
    // Of the gRPC call, which gRPC itself ends.
    problem("a deadline that nobody set");
  }
}

void Observed::check_done(std::string_view wrong) {
  if (must_be_refused(wrong)) problem("takes a wrong " + std::string(wrong));
  const auto& done = *done_;
  const bool known = done.finish_reason() == "stop" || done.finish_reason() == "length" ||
                     done.finish_reason() == "tool_calls";
  if (!known) problem("the finish reason " + done.finish_reason());
  if (!done.stop_text().empty()) {
    if (done.finish_reason() == "length") problem("a stop text, and the length");
    const auto& stops = request_.stop();
    if (std::find(stops.begin(), stops.end(), done.stop_text()) == stops.end()) {
      problem("a stop text of nobody");
    }
  }
  if ((done.finish_reason() == "tool_calls") && calls_.empty()) problem("no calls");
  check_usage(done.usage());
  check_text();
  check_form();
}

void Observed::check_usage(const v1::Usage& usage) {
  const auto total = static_cast<std::uint64_t>(usage.prompt_tokens()) + usage.completion_tokens();
  bool good = usage.prompt_tokens() > 0 && usage.cached_tokens() < usage.prompt_tokens() &&
              total <= target_.window && ids_ <= usage.completion_tokens() &&
              usage.accepted_tokens() <= usage.drafted_tokens() &&
              usage.accepted_tokens() <= usage.completion_tokens() + 1;
  if (!target_.drafts && usage.drafted_tokens() > 0) good = false;
  if (request_.has_tokens() && !request_.tokens().ids().empty()) {
    good =
        good && usage.prompt_tokens() == static_cast<std::uint32_t>(request_.tokens().ids_size());
  }
  if (request_.has_max_tokens()) good = good && usage.completion_tokens() <= request_.max_tokens();
  if (done_->finish_reason() == "length") {
    const bool all =
        request_.has_max_tokens() && usage.completion_tokens() == request_.max_tokens();
    good = good && (all || total == target_.window);
  }
  if (!good) {
    problem("usage " + usage.ShortDebugString() + " with " + std::to_string(ids_) +
            " tokens received, " + done_->finish_reason());
  }
}

void Observed::check_text() {
  if (request_.has_chat() && !request_.chat().raw_answer()) return;  // it was parted
  for (const auto& stop : request_.stop()) {
    if (text_.find(stop) != std::string::npos) problem("a stop text is part of the answer");
  }
}

void Observed::check_form() {
  // An answer that was cut has no form.
  if (done_->finish_reason() == "length" || !done_->stop_text().empty()) return;
  const auto& choice = request_.chat().tool_choice_json();
  if (choice == "\"required\"" || starts_with(choice, "{")) {
    if (request_.chat().raw_answer()) return;
    // Reasoning that the model never closed is all there is.
    if (reasoned_ && calls_.empty() && text_.empty()) return;
    if (calls_.empty()) problem("a forced call is missing: " + text_);
    for (const auto& call : calls_) {
      if (!is_json(call.arguments(), true)) problem("arguments: " + call.arguments());
    }
    return;
  }
  if (!request_.has_format() || request_.has_chat()) return;
  const bool object = request_.format().json_object();
  if ((object || request_.format().has_json_schema()) && !is_json(text_, object)) {
    problem("no JSON: " + text_);
  }
}

}  // namespace berth::stress
