#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "worker/answer/answer_parser.h"

namespace berth::worker {

// What a client has when it put the deltas of an answer together.
struct ParsedAnswer {
  struct Call {
    std::string name;
    std::string arguments;
    bool operator==(const Call&) const = default;
  };
  std::string content;
  std::string reasoning;
  std::vector<Call> calls;
  bool operator==(const ParsedAnswer&) const = default;

  void add(const AnswerDelta& delta) {
    content += delta.content;
    reasoning += delta.reasoning;
    for (const auto& piece : delta.tool_calls) {
      if (piece.index == calls.size()) {
        EXPECT_EQ(piece.id, "call_" + std::to_string(piece.index));
        calls.push_back({piece.name, piece.arguments});
      } else {
        // One call after the other; id and name come once.
        EXPECT_EQ(piece.index + 1, calls.size());
        EXPECT_TRUE(piece.id.empty() && piece.name.empty());
        if (!calls.empty()) calls.back().arguments += piece.arguments;
      }
    }
  }
};

inline void PrintTo(const ParsedAnswer& answer, std::ostream* out) {
  *out << "content '" << answer.content << "' reasoning '" << answer.reasoning << "'";
  for (const auto& call : answer.calls) *out << " " << call.name << "(" << call.arguments << ")";
}

inline AnswerParser make_parser(const AnswerForm& form) {
  return AnswerParser(form, {.tools = {"f", "get_weather", "g-2"}, .make_id = nullptr});
}

inline ParsedAnswer parse_pieces(const AnswerForm& form, const std::vector<std::string>& pieces) {
  auto parser = make_parser(form);
  ParsedAnswer answer;
  AnswerDelta delta;
  for (const auto& piece : pieces) {
    delta.clear();
    parser.push(piece, delta);
    answer.add(delta);
  }
  delta.clear();
  parser.finish(delta);
  answer.add(delta);
  return answer;
}

// In pieces of `size` bytes.
inline std::vector<std::string> cut(std::string_view text, std::size_t size) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size(); at += size) pieces.emplace_back(text.substr(at, size));
  return pieces;
}

// Whole and byte by byte, which must not differ.
inline ParsedAnswer parse_answer(const AnswerForm& form, std::string_view text) {
  const auto whole = parse_pieces(form, {std::string(text)});
  EXPECT_EQ(parse_pieces(form, cut(text, 1)), whole) << text;
  return whole;
}

}  // namespace berth::worker
