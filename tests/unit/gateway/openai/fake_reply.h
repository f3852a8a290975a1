#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway::openai {

// Keeps an answer, and that it was given as it has to be.
class FakeReply : public Reply {
 public:
  void send(HttpResponse response) override {
    EXPECT_FALSE(sent || head) << "answered twice";
    sent = std::move(response);
  }
  void begin(HttpResponse response) override {
    EXPECT_FALSE(sent || head) << "answered twice";
    head = std::move(response);
  }
  bool write(std::string piece) override {
    EXPECT_TRUE(head && !ended) << "written outside of a stream";
    body += piece;
    pieces.push_back(std::move(piece));
    return room;
  }
  void end() override {
    EXPECT_TRUE(head && !ended);
    ended = true;
  }
  void break_off() override {
    EXPECT_TRUE(head && !ended);
    ended = true;
    broken_off = true;
  }

  [[nodiscard]] bool over() const { return sent || ended; }
  [[nodiscard]] bool has(std::string_view text) const {
    return body.find(text) != std::string::npos;
  }
  // What stands in that header, of all of that name.
  [[nodiscard]] static std::vector<std::string> header(const HttpResponse& response,
                                                       std::string_view name) {
    std::vector<std::string> values;
    for (const HttpHeader& one : response.headers) {
      if (one.name == name) values.push_back(one.value);
    }
    return values;
  }

  std::optional<HttpResponse> sent;
  std::optional<HttpResponse> head;
  std::string body;
  std::vector<std::string> pieces;
  bool room = true;
  bool ended = false;
  bool broken_off = false;
};

}  // namespace berth::gateway::openai
