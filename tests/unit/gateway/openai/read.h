#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/requests.h"

namespace berth::gateway::openai {

// A body with these members beside those that it needs.
inline std::string chat_body(std::string_view members) {
  std::string body = R"({"model":"m","messages":[{"role":"user","content":"Hi"}])";
  if (!members.empty()) body += ",";
  return body + std::string(members) + "}";
}
inline std::string completion_body(std::string_view members) {
  std::string body = R"({"model":"m","prompt":"Hi")";
  if (!members.empty()) body += ",";
  return body + std::string(members) + "}";
}

template <typename Request>
Result<Request> read(Result<Request> (*reader)(const boost::json::object&), std::string_view body) {
  const Result<boost::json::object> parsed = parse_body(body);
  if (!parsed) return fail(parsed.error());
  return reader(*parsed);
}

// A request that is refused, for the field `param`.
struct Refusal {
  const char* name;  // of the test
  const char* body;  // or members of one
  const char* param;
};

inline std::string param_of(const Error& error) {
  return error.extras ? error.extras->param : std::string();
}

template <typename Request>
void expect_refused(const Result<Request>& read, const Refusal& refusal) {
  ASSERT_FALSE(read) << refusal.body;
  EXPECT_EQ(read.error().reason, Reason::kInvalidArgument);
  EXPECT_EQ(param_of(read.error()), refusal.param) << read.error().message;
  EXPECT_FALSE(read.error().message.empty());
}

}  // namespace berth::gateway::openai
