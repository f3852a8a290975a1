#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/generate_stream.h"
#include "worker/template/chat_template.h"

namespace berth::worker {

// Makes jobs out of requests on a thread of its own, in their order: checks them, renders the chat
// template, tokenizes, and submits to the runner. So neither gRPC's threads nor the context thread
// wait for a long text or a slow template. Owns the parsed template.
//
// start() once the vocabulary is there; the first thing that the thread does is to parse the
// template and to measure the vocabulary, beside the rest of the load. The thread lives as long as
// the process.
class Preparer {
 public:
  static constexpr std::size_t kQueueLimit = 256;

  // A template of the operator's instead of the model's own; empty: the model's.
  Preparer(LaneRunner& runner, std::string template_override);
  Preparer(const Preparer&) = delete;
  Preparer& operator=(const Preparer&) = delete;
  ~Preparer();

  void start(const Engine& engine);
  // Whether the model can chat. After start().
  [[nodiscard]] bool has_template() const { return !template_source_.empty(); }
  // Bytes of the longest token. Waits for the measurement, some milliseconds at most.
  [[nodiscard]] std::uint32_t longest_token_bytes();

  // Takes a request; its stream hears the end, also of a refusal. Any thread, after start().
  void prepare(std::shared_ptr<GenerateStream> stream);

 private:
  void run();
  void handle(const std::shared_ptr<GenerateStream>& stream);
  Result<std::unique_ptr<Job>> make_job(const v1::GenerateRequest& request);
  Result<std::vector<TokenId>> tokens_of(const v1::GenerateRequest& request);
  Result<std::vector<TokenId>> chat_tokens(const v1::ChatInput& chat);

  LaneRunner& runner_;
  std::string template_source_;
  const Engine* engine_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<GenerateStream>> queue_;
  std::optional<std::uint32_t> longest_token_bytes_;
  bool stopping_ = false;

  std::optional<Result<ChatTemplate>> template_;  // own thread
  std::thread thread_;
};

}  // namespace berth::worker
