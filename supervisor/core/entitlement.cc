#include "supervisor/core/entitlement.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "supervisor/core/redact.h"

namespace berth::core {
namespace {

constexpr std::size_t kMessageBytes = 4096;

// Whether the message is about what the caller himself sent, which he may be told in any case.
bool about_his_request(Reason reason) {
  switch (reason) {
    case Reason::kInvalidArgument:
    case Reason::kWindowExceeded:
    case Reason::kNotChat:
    case Reason::kTemplateFailed:
    case Reason::kUnauthenticated:
    case Reason::kPermissionDenied:
    case Reason::kNotFound:
    case Reason::kMethodNotAllowed:
    case Reason::kRequestTimeout:
    case Reason::kBodyTooLarge:
    case Reason::kUnsupportedMediaType:
    case Reason::kHeadersTooLarge:
    case Reason::kRateLimited:
      return true;
    case Reason::kUnknownModel:
    case Reason::kConflict:
    case Reason::kQueueFull:
    case Reason::kNoRoom:
    case Reason::kLoadFailed:
    case Reason::kDraining:
    case Reason::kShuttingDown:
    case Reason::kStoreUnavailable:
    case Reason::kStoreBusy:
    case Reason::kDeadline:
    case Reason::kInsufficientMemory:
    case Reason::kPressureAbort:
    case Reason::kWorkerDied:
    case Reason::kInternal:
      return false;
  }
  return false;
}

// Where the first token that is an absolute path begins; npos: there is none. Routes and media
// types stand in messages about the caller's request only, which are not looked through.
std::size_t first_path(std::string_view text) {
  for (std::size_t at = text.find('/'); at != std::string_view::npos; at = text.find('/', at + 1)) {
    if (at == 0) return at;
    constexpr std::string_view kBefore = " \"'`(<[{=:,~";
    if (kBefore.find(text[at - 1]) != std::string_view::npos) {
      const std::size_t blank = text.rfind(' ', at);
      return blank == std::string_view::npos ? 0 : blank + 1;
    }
  }
  return std::string_view::npos;
}

std::string without_paths(const std::string& message) {
  const std::size_t at = first_path(message);
  if (at == std::string::npos) return message;
  return message.substr(0, at) + carried_text(message.substr(at), kMessageBytes);
}

Error for_entitled_client(const Error& error) {
  Error cut = error;
  if (!about_his_request(error.reason)) cut.message = without_paths(error.message);
  if (!error.extras || !error.extras->failure) return cut;
  ErrorExtras extras = *error.extras;
  extras.failure->log_tail.clear();
  extras.failure->command.clear();
  extras.failure->reason = without_paths(extras.failure->reason);
  cut.extras = std::make_shared<const ErrorExtras>(std::move(extras));
  return cut;
}

// A field's place up to the first part that the client may have chosen: keys of his objects.
std::string plain_start(std::string_view param) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '[' || c == ']';
  };
  constexpr std::size_t kMostBytes = 64;
  std::string kept;
  while (!param.empty()) {
    const std::string_view part = param.substr(0, param.find('.'));
    if (part.empty() || !std::ranges::all_of(part, is_plain)) break;
    if (kept.size() + part.size() + 1 > kMostBytes) break;
    if (!kept.empty()) kept += '.';
    kept += part;
    param.remove_prefix(std::min(param.size(), part.size() + 1));
  }
  return kept;
}

}  // namespace

Error for_caller(const Error& error, const Caller& caller) {
  if (caller.admin()) return error;
  if (caller.entitled) return for_entitled_client(error);
  const bool his = about_his_request(error.reason);
  Error cut(error.reason, his ? error.message : std::string(reason_info(error.reason).sentence));
  if (!error.extras) return cut;
  ErrorExtras extras;
  extras.param = error.extras->param;
  extras.retry_after_seconds = error.extras->retry_after_seconds;
  if (his) {
    extras.needed = error.extras->needed;
    extras.limit = error.extras->limit;
  }
  cut.extras = std::make_shared<const ErrorExtras>(std::move(extras));
  return cut;
}

std::string text_for(const std::string& text, Reason reason, const Caller& caller) {
  return text.empty() ? text : for_caller(Error(reason, text), caller).message;
}

std::string model_problem_for(const std::string& problem, const Caller& caller) {
  return caller.admin() || problem.empty() ? problem : "The model cannot be used.";
}

std::string message_for_log(const Error& error) {
  const ReasonInfo& info = reason_info(error.reason);
  const bool quotes = error.extras && error.extras->quotes;
  if (!quotes && error.reason != Reason::kInvalidArgument &&
      error.reason != Reason::kTemplateFailed) {
    return error.message;
  }
  std::string message(info.sentence);
  const std::string param = error.extras ? plain_start(error.extras->param) : std::string();
  if (!param.empty()) message += " The field is " + param + ".";
  return message;
}

}  // namespace berth::core
