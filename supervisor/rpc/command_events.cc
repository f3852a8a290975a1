#include "supervisor/rpc/command_events.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <charconv>
#include <cstdint>
#include <utility>

#include "supervisor/core/redact.h"

namespace berth::rpc {
namespace {

namespace json = boost::json;

constexpr std::size_t kLongestLine = 4UL << 20U;
constexpr std::size_t kLongestMessage = 300;
constexpr std::size_t kMostToolCalls = 256;
constexpr double kLongestRetry = 3600;

const json::value* member(const json::value* value, std::string_view key) {
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains({key.data(), key.size()});
}

const json::array* list(const json::value* value, std::string_view key) {
  const json::value* found = member(value, key);
  return found == nullptr ? nullptr : found->if_array();
}

std::string text(const json::value* value, std::string_view key) {
  const json::value* found = member(value, key);
  if (found == nullptr || !found->is_string()) return {};
  return std::string(found->get_string());
}

std::uint32_t count(const json::value* value, std::string_view key) {
  const json::value* found = member(value, key);
  if (found == nullptr) return 0;
  boost::system::error_code failed;
  const auto number = found->to_number<std::uint32_t>(failed);
  return failed ? 0 : number;
}

bool given(const json::value* value) {
  return value != nullptr && !value->is_null();
}

// {"error":{"message"}}, {"error":"…"}, {"message"}, {"detail"}: as the programs do it.
std::string message_of(const json::value* value) {
  const json::value* error = member(value, "error");
  std::string said = text(error, "message");
  if (said.empty()) said = text(value, "error");
  if (said.empty()) said = text(value, "message");
  if (said.empty()) said = text(value, "detail");
  return core::carried_text(said, kLongestMessage);
}

std::vector<core::ToolCall> tool_calls(const json::array* calls) {
  std::vector<core::ToolCall> read;
  if (calls == nullptr) return read;
  for (const json::value& call : *calls) {
    if (read.size() == kMostToolCalls) break;
    const json::value* function = member(&call, "function");
    core::ToolCall piece;
    // Whole answers number them by their order alone.
    piece.index = member(&call, "index") != nullptr ? count(&call, "index")
                                                    : static_cast<std::uint32_t>(read.size());
    piece.id = text(&call, "id");
    piece.name = text(function, "name");
    piece.arguments = text(function, "arguments");
    read.push_back(std::move(piece));
  }
  return read;
}

// Into the words of our protocol.
std::string finish_reason_of(const std::string& said) {
  if (said == "length" || said == "tool_calls") return said;
  if (said == "function_call") return "tool_calls";
  return "stop";
}

}  // namespace

Status CommandEvents::feed(std::string_view piece) {
  while (!piece.empty() && !complete_) {
    const std::size_t end = piece.find_first_of("\r\n");
    const std::string_view part = piece.substr(0, end);
    if (line_.size() + part.size() > kLongestLine) {
      return fail(Reason::kInternal,
                  "The model's program sent a line of more than 4 MiB in its answer.");
    }
    line_ += part;
    if (end == std::string_view::npos) return {};
    piece.remove_prefix(end + 1);
    if (const Status taken = take_line(); !taken) return taken;
  }
  return {};
}

Status CommandEvents::take_line() {
  const std::string line = std::exchange(line_, {});
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return {};
  std::string_view data = std::string_view(line).substr(kData.size());
  const std::size_t first = data.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  data.remove_prefix(first);
  if (data.starts_with("[DONE]")) {
    complete_ = true;
    return {};
  }
  return read(data);
}

Status CommandEvents::feed_whole(std::string_view body) {
  if (const Status taken = read(body); !taken) return taken;
  if (!finish_reason_ && tokens_.empty()) {
    return fail(Reason::kInternal, "The model's program sent an answer without a choice.");
  }
  complete_ = true;
  return {};
}

Status CommandEvents::read(std::string_view data) {
  boost::system::error_code failed;
  const json::value event = json::parse({data.data(), data.size()}, failed);
  if (failed || !event.is_object()) {
    return fail(Reason::kInternal, "The model's program sent what is no JSON in its answer.");
  }
  if (given(member(&event, "error"))) {
    const std::string said = message_of(&event);
    return fail(Reason::kInternal, "The model's program failed within its answer" +
                                       (said.empty() ? "." : ": " + said));
  }
  if (const json::value* usage = member(&event, "usage"); given(usage)) {
    usage_.prompt_tokens = count(usage, "prompt_tokens");
    usage_.completion_tokens = count(usage, "completion_tokens");
    usage_.cached_tokens = count(member(usage, "prompt_tokens_details"), "cached_tokens");
  }
  const json::array* choices = list(&event, "choices");
  if (choices == nullptr || choices->empty()) return {};
  const json::value* choice = &choices->front();
  const json::value* delta = member(choice, "delta");
  if (!given(delta)) delta = member(choice, "message");
  core::TokenEvent token;
  token.text = text(choice, "text") + text(delta, "content");
  token.reasoning = text(delta, "reasoning_content");
  if (token.reasoning.empty()) token.reasoning = text(delta, "reasoning");
  token.tool_calls = tool_calls(list(delta, "tool_calls"));
  if (!token.text.empty() || !token.reasoning.empty() || !token.tool_calls.empty()) {
    tokens_.push_back(std::move(token));
  }
  const std::string reason = text(choice, "finish_reason");
  if (!reason.empty()) finish_reason_ = finish_reason_of(reason);
  return {};
}

Error command_error(unsigned int status, std::string_view body, std::string_view retry_after) {
  boost::system::error_code failed;
  const json::value said = json::parse({body.data(), body.size()}, failed);
  std::string message = failed ? std::string() : message_of(&said);
  message = "The model's program answered " + std::to_string(status) +
            (message.empty() ? "." : ": " + message);
  ErrorExtras extras;
  extras.quotes = true;
  if (status == 429) {
    double seconds = 0;
    const auto read =
        std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(), seconds);
    if (read.ec == std::errc() && seconds >= 0 && seconds <= kLongestRetry) {
      extras.retry_after_seconds = seconds;
    }
    return {Reason::kQueueFull, std::move(message), std::move(extras)};
  }
  // It refused berth's own key: nothing that the client can mend.
  const bool ours = status == 401 || status >= 500 || status < 400;
  return {ours ? Reason::kInternal : Reason::kInvalidArgument, std::move(message),
          std::move(extras)};
}

}  // namespace berth::rpc
