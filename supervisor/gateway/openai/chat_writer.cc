#include <utility>

#include "common/json_text.h"
#include "supervisor/gateway/openai/answer_parts.h"
#include "supervisor/gateway/openai/answer_writer.h"

namespace berth::gateway::openai {
namespace {

class ChatWriter : public AnswerWriter {
 public:
  explicit ChatWriter(AnswerHead head)
      : head_(std::move(head)),
        piece_("data: " + opening(head_, "chatcmpl", "chat.completion.chunk")) {}

  void write(const core::TokenEvent& token, std::string& out) override;
  void write_end(const Finished& finished, std::string& out) override;
  std::size_t collect(core::TokenEvent token) override;
  std::string whole(const Finished& finished) override;

 private:
  // A call of which all pieces were joined.
  struct Call {
    std::string id;
    std::string name;
    std::string arguments;
  };

  void write_role(bool calls, std::string& out);
  void open_choice(std::string& out) const;
  void close_choice(std::string& out) const;
  // Whether the client gets to see that call.
  [[nodiscard]] bool shows(const core::ToolCall& call) const {
    return head_.parallel_tool_calls || call.index == 0;
  }
  [[nodiscard]] std::string delta_of(const core::TokenEvent& token) const;
  void append_calls(std::string& out) const;
  void keep(const core::ToolCall& call);

  const AnswerHead head_;
  const std::string piece_;  // how every piece begins
  bool role_sent_ = false;

  // What was collected.
  std::string text_;
  std::string reasoning_;
  std::vector<Call> calls_;
  std::string logprobs_;  // JSON, the elements of the list
  std::size_t kept_bytes_ = 0;
};

void ChatWriter::open_choice(std::string& out) const {
  out += piece_;
  out += ",\"choices\":[{\"index\":0,\"delta\":";
}

void ChatWriter::close_choice(std::string& out) const {
  out += "}]";
  append_piece_end(out, head_);
}

// OpenAI's content is null where an answer begins with a call.
void ChatWriter::write_role(bool calls, std::string& out) {
  role_sent_ = true;
  open_choice(out);
  out += R"({"role":"assistant","content":)";
  out += calls ? "null" : "\"\"";
  out += R"(},"logprobs":null,"finish_reason":null)";
  close_choice(out);
}

std::string ChatWriter::delta_of(const core::TokenEvent& token) const {
  std::string delta;
  const auto next = [&delta](std::string_view name) {
    if (!delta.empty()) delta += ',';
    delta += name;
  };
  if (!token.reasoning.empty()) {
    next("\"reasoning_content\":");
    append_json_string(delta, token.reasoning);
  }
  if (!token.text.empty()) {
    next("\"content\":");
    append_json_string(delta, token.text);
  }
  bool first = true;
  for (const core::ToolCall& call : token.tool_calls) {
    if (!shows(call)) continue;
    if (first) {
      next("\"tool_calls\":[");
    } else {
      delta += ',';
    }
    first = false;
    delta += "{\"index\":";
    append_whole(delta, call.index);
    if (!call.name.empty()) {
      delta += ",\"id\":";
      append_json_string(delta, call.id);
      delta += ",\"type\":\"function\"";
    }
    delta += ",\"function\":{";
    if (!call.name.empty()) {
      delta += "\"name\":";
      append_json_string(delta, call.name);
      delta += ',';
    }
    delta += "\"arguments\":";
    append_json_string(delta, call.arguments);
    delta += "}}";
  }
  if (!first) delta += ']';
  return delta;
}

void ChatWriter::write(const core::TokenEvent& token, std::string& out) {
  const bool logprobs = head_.logprobs && !token.logprobs.empty();
  const std::string delta = delta_of(token);
  if (delta.empty() && !logprobs) return;
  if (!role_sent_) write_role(token.text.empty() && !token.tool_calls.empty(), out);
  open_choice(out);
  out += '{';
  out += delta;
  out += "},\"logprobs\":";
  if (logprobs) {
    out += "{\"content\":";
    append_chat_logprobs(out, token.logprobs);
    out += ",\"refusal\":null}";
  } else {
    out += "null";
  }
  out += ",\"finish_reason\":null";
  close_choice(out);
}

void ChatWriter::write_end(const Finished& finished, std::string& out) {
  if (!role_sent_) write_role(false, out);
  open_choice(out);
  out += "{},\"logprobs\":null,\"finish_reason\":";
  append_json_string(out, finished.done.finish_reason);
  out += "}]";
  append_stream_end(out, head_, piece_, finished.done);
}

void ChatWriter::keep(const core::ToolCall& call) {
  if (!shows(call)) return;
  // The worker counts them up; a gap would be a defect of it.
  constexpr std::uint32_t kMostCalls = 4096;
  if (call.index >= kMostCalls) return;
  if (call.index >= calls_.size()) calls_.resize(call.index + 1);
  Call& kept = calls_[call.index];
  kept.id += call.id;
  kept.name += call.name;
  kept.arguments += call.arguments;
  kept_bytes_ += call.id.size() + call.name.size() + call.arguments.size();
}

std::size_t ChatWriter::collect(core::TokenEvent token) {
  text_ += token.text;
  reasoning_ += token.reasoning;
  for (const core::ToolCall& call : token.tool_calls) keep(call);
  if (head_.logprobs && !token.logprobs.empty()) {
    std::string list;
    append_chat_logprobs(list, token.logprobs);
    if (!logprobs_.empty()) logprobs_ += ',';
    logprobs_.append(list, 1, list.size() - 2);
  }
  return kept_bytes_ + text_.size() + reasoning_.size() + logprobs_.size();
}

void ChatWriter::append_calls(std::string& out) const {
  out += ",\"tool_calls\":[";
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"id\":";
    append_json_string(out, calls_[i].id);
    out += ",\"type\":\"function\",\"function\":{\"name\":";
    append_json_string(out, calls_[i].name);
    out += ",\"arguments\":";
    append_json_string(out, calls_[i].arguments);
    out += "}}";
  }
  out += ']';
}

std::string ChatWriter::whole(const Finished& finished) {
  std::string out = opening(head_, "chatcmpl", "chat.completion");
  out += R"(,"choices":[{"index":0,"message":{"role":"assistant","content":)";
  if (text_.empty() && !calls_.empty()) {
    out += "null";
  } else {
    append_json_string(out, text_);
  }
  out += ",\"refusal\":null";
  if (!reasoning_.empty()) {
    out += ",\"reasoning_content\":";
    append_json_string(out, reasoning_);
  }
  if (!calls_.empty()) append_calls(out);
  out += "},\"logprobs\":";
  out += head_.logprobs ? "{\"content\":[" + logprobs_ + "],\"refusal\":null}" : "null";
  out += ",\"finish_reason\":";
  append_json_string(out, finished.done.finish_reason);
  out += "}]";
  append_answer_end(out, finished.done);
  return out;
}

}  // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(AnswerHead head) {
  return std::make_unique<ChatWriter>(std::move(head));
}

}  // namespace berth::gateway::openai
