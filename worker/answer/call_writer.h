#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "worker/answer/answer_delta.h"

namespace berth::worker {

// Writes an answer's tool calls as deltas, numbers them and gives each an id. The id is ours, not
// the model's: a model's own may repeat, or come after the arguments. Lives as long as one answer.
class CallWriter {
 public:
  CallWriter(std::vector<std::string> tools, std::function<std::string()> make_id);

  [[nodiscard]] bool knows(std::string_view name) const { return tools_.contains(name); }
  // Starts the next call.
  void begin(const std::string& name, AnswerDelta& out);
  // The next bytes of its arguments.
  void add(std::string_view arguments, AnswerDelta& out);

 private:
  std::set<std::string, std::less<>> tools_;
  std::function<std::string()> make_id_;
  std::uint32_t calls_ = 0;
};

}  // namespace berth::worker
