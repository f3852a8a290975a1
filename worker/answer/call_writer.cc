#include "worker/answer/call_writer.h"

#include <utility>

namespace berth::worker {

CallWriter::CallWriter(std::vector<std::string> tools, std::function<std::string()> make_id)
    : make_id_(std::move(make_id)) {
  for (auto& tool : tools) tools_.insert(std::move(tool));
}

void CallWriter::begin(const std::string& name, AnswerDelta& out) {
  auto& delta = out.tool_calls.emplace_back();
  delta.index = calls_;
  delta.id = make_id_ ? make_id_() : "call_" + std::to_string(calls_);
  delta.name = name;
  ++calls_;
}

void CallWriter::add(std::string_view arguments, AnswerDelta& out) {
  if (arguments.empty() || calls_ == 0) return;
  const auto index = calls_ - 1;
  if (out.tool_calls.empty() || out.tool_calls.back().index != index) {
    out.tool_calls.emplace_back().index = index;
  }
  out.tool_calls.back().arguments.append(arguments);
}

}  // namespace berth::worker
