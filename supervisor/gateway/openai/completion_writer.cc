#include <algorithm>
#include <utility>

#include "common/json_text.h"
#include "common/text.h"
#include "supervisor/gateway/openai/answer_parts.h"
#include "supervisor/gateway/openai/answer_writer.h"

namespace berth::gateway::openai {
namespace {

// A token's text, or its bytes where they are only a part of a character, as OpenAI shows them.
std::string token_name(const std::string& text) {
  if (!first_invalid_utf8(text)) return text;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    name += "\\x";
    name += kHex[byte >> 4U];
    name += kHex[byte & 0x0FU];
  }
  return name;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xC0U) != 0x80U;  // no continuation byte
  }));
}

// The four lists of a completion's logprobs: JSON, without their brackets.
class LogprobLists {
 public:
  void add(const core::TokenLogprobs& token, std::size_t offset) {
    if (!tokens_.empty()) {
      for (std::string* list : {&tokens_, &logprobs_, &top_, &offsets_}) *list += ',';
    }
    append_json_string(tokens_, token_name(token.chosen.text));
    append_logprob(logprobs_, token.chosen.logprob);
    append_whole(offsets_, offset);
    append_top(token);
  }
  void append_to(std::string& out) const {
    out += "{\"tokens\":[" + tokens_ + "],\"token_logprobs\":[" + logprobs_ +
           "],\"top_logprobs\":[" + top_ + "],\"text_offset\":[" + offsets_ + "]}";
  }
  [[nodiscard]] std::size_t bytes() const {
    return tokens_.size() + logprobs_.size() + top_.size() + offsets_.size();
  }

 private:
  // The chosen one is in it, also where it is none of the likeliest. Tokens of the same name are
  // one entry, that of the likeliest.
  void append_top(const core::TokenLogprobs& token) {
    std::vector<std::string> names;
    top_ += '{';
    const auto add = [&](const core::TokenLogprob& one) {
      std::string name = token_name(one.text);
      if (std::find(names.begin(), names.end(), name) != names.end()) return;
      if (!names.empty()) top_ += ',';
      append_json_string(top_, name);
      top_ += ':';
      append_logprob(top_, one.logprob);
      names.push_back(std::move(name));
    };
    for (const core::TokenLogprob& one : token.top) add(one);
    add(token.chosen);
    top_ += '}';
  }

  std::string tokens_;
  std::string logprobs_;
  std::string top_;
  std::string offsets_;
};

class CompletionWriter : public AnswerWriter {
 public:
  explicit CompletionWriter(AnswerHead head)
      : head_(std::move(head)), piece_("data: " + opening(head_, "cmpl", "text_completion")) {}

  void write(const core::TokenEvent& token, std::string& out) override {
    LogprobLists lists;
    const bool logprobs = add_logprobs(token, lists);
    if (token.text.empty() && !logprobs) return;
    write_choice(token.text, logprobs ? &lists : nullptr, "", out);
    append_piece_end(out, head_);
  }

  void write_end(const Finished& finished, std::string& out) override {
    write_choice("", nullptr, finished.done.finish_reason, out);
    append_stream_end(out, head_, piece_, finished.done);
  }

  std::size_t collect(core::TokenEvent token) override {
    add_logprobs(token, lists_);
    text_ += token.text;
    return text_.size() + lists_.bytes();
  }

  std::string whole(const Finished& finished) override {
    std::string out = opening(head_, "cmpl", "text_completion");
    out += ",\"choices\":[{\"index\":0,\"text\":";
    append_json_string(out, text_);
    out += ",\"logprobs\":";
    if (head_.logprobs) {
      lists_.append_to(out);
    } else {
      out += "null";
    }
    out += ",\"finish_reason\":";
    append_json_string(out, finished.done.finish_reason);
    out += "}]";
    append_answer_end(out, finished.done);
    return out;
  }

 private:
  // Offsets count the characters of the answer, those before this event and those of its tokens.
  bool add_logprobs(const core::TokenEvent& token, LogprobLists& to) {
    if (!head_.logprobs || token.logprobs.empty()) return false;
    for (const core::TokenLogprobs& one : token.logprobs) {
      to.add(one, offset_);
      offset_ += count_characters(one.chosen.text);
    }
    return true;
  }

  void write_choice(std::string_view text, const LogprobLists* logprobs, std::string_view reason,
                    std::string& out) const {
    out += piece_;
    out += ",\"choices\":[{\"index\":0,\"text\":";
    append_json_string(out, text);
    out += ",\"logprobs\":";
    if (logprobs != nullptr) {
      logprobs->append_to(out);
    } else {
      out += "null";
    }
    out += ",\"finish_reason\":";
    if (reason.empty()) {
      out += "null";
    } else {
      append_json_string(out, reason);
    }
    out += "}]";
  }

  const AnswerHead head_;
  const std::string piece_;  // how every piece begins
  std::size_t offset_ = 0;   // characters
  std::string text_;
  LogprobLists lists_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(AnswerHead head) {
  return std::make_unique<CompletionWriter>(std::move(head));
}

}  // namespace berth::gateway::openai
