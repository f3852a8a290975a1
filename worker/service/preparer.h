#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/call_lines.h"
#include "worker/service/pending_call.h"
#include "worker/template/template_choice.h"
#include "worker/template/template_renderer.h"

namespace berth::worker {

// The threads that do what takes long before a call becomes a job or has its answer: checks, chat
// templates, tokenizing, grammars. So neither gRPC's threads nor the context thread wait for a long
// text or a slow template. Owns the template renderer, and the two lines of calls, with a thread
// each: chats wait for templates, everything else does not. A third thread watches deadlines.
//
// start() once the vocabulary is there; the first thing that the chats' thread does is to measure
// the vocabulary and to start berth-template, beside the rest of the load. The threads live as long
// as the process.
class Preparer {
 public:
  Preparer(LaneRunner& runner, TemplateChoice choice);
  Preparer(const Preparer&) = delete;
  Preparer& operator=(const Preparer&) = delete;
  ~Preparer();

  void start(const Engine& engine);
  // Whether the model can chat. After start().
  [[nodiscard]] bool has_template() const { return !choice_.source.empty(); }
  // Bytes of the longest token. Waits for the measurement, which takes some milliseconds, and makes
  // its own where that is not done within kMeasureBound.
  [[nodiscard]] std::uint32_t longest_token_bytes();

  // Takes a call, which hears its end, also of a refusal. Any thread, after start().
  void prepare(const std::shared_ptr<PendingCall>& call) { lines_.push(call); }
  // Ends what is not delivered yet and was cancelled, or whose deadline has passed. Any thread.
  void sweep() { lines_.sweep(); }
  // Ends everything that is not delivered yet, and what comes, with kShuttingDown. Any thread, also
  // before start().
  void stop() { lines_.stop(); }

  // --- for CallWork::run() and deliver()

  [[nodiscard]] const Engine& engine() const { return *engine_; }
  [[nodiscard]] LaneRunner& runner() { return runner_; }
  [[nodiscard]] const std::string& template_source() const { return choice_.source; }
  // The prompt of a chat, without its tools unless `with_tools`. On the chats' thread only.
  // Errors: kNotChat, kTemplateFailed, kInvalidArgument.
  Result<RenderedPrompt> render(const v1::ChatInput& chat, bool with_tools);
  // Whether the call that the others' thread works on has ended: nobody waits for what comes of it.
  [[nodiscard]] bool abandoned_other() { return lines_.abandoned(CallLines::Line::kOthers); }
  // Has the others' thread do the rest of a call that was delivered, before its next call. Any
  // thread; whoever posts bounds how much.
  void post(std::function<void()> task) { lines_.post(CallLines::Line::kOthers, std::move(task)); }
  // TokenBytes::bound. Waits as longest_token_bytes().
  [[nodiscard]] std::uint32_t token_bytes_bound() { return token_bytes().bound; }
  // kWindowExceeded where a text cannot fit into the window, whatever its tokens are.
  Status check_length(std::string_view text);
  Status check_length(const std::vector<PromptPart>& parts);

 private:
  static constexpr auto kMeasureBound = std::chrono::seconds(1);

  void run_chats();
  TokenBytes measure();
  TokenBytes token_bytes();

  LaneRunner& runner_;
  TemplateChoice choice_;
  const Engine* engine_ = nullptr;
  CallLines lines_;

  std::mutex mutex_;
  std::condition_variable measured_;
  std::optional<TokenBytes> token_bytes_;

  std::optional<TemplateRenderer> renderer_;  // the chats' thread; none: there is no template
  std::thread chats_thread_;                  // berth-template dies with it
  std::thread others_thread_;
  std::thread deadlines_thread_;
};

}  // namespace berth::worker
