#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/generate_stream.h"
#include "worker/template/chat_template.h"

namespace berth::worker {

// Makes jobs out of requests: checks them, renders the chat template, tokenizes, and submits to the
// runner. So neither gRPC's threads nor the context thread wait for a long text or a slow template.
// Owns the parsed template.
//
// There are two lines, each with a thread of its own and in the order of arrival: chats, which wait
// for templates, and everything else. A third thread watches deadlines. Until a request has become
// a job it ends from here, also while its template is being rendered, which cannot be broken off:
// the thread then drops what comes of it.
//
// start() once the vocabulary is there; the first thing that the chats' thread does is to measure
// the vocabulary and to parse the template, beside the rest of the load. The threads live as long
// as the process.
class Preparer {
 public:
  static constexpr std::size_t kQueueLimit = 256;  // of each line

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
  void prepare(const std::shared_ptr<GenerateStream>& stream);

  // Ends what is not a job yet and was cancelled, or whose deadline has passed. Any thread.
  void sweep();
  // Ends everything that is not a job yet, and what comes, with kShuttingDown. Any thread, also
  // before start().
  void stop();

 private:
  struct Waiting {
    std::shared_ptr<GenerateStream> stream;
    std::optional<SteadyTime> deadline;
  };
  struct Line {
    std::deque<Waiting> queue;
    std::optional<Waiting> current;  // being made a job; whoever takes it ends the stream
  };
  using Ended = std::vector<std::pair<std::shared_ptr<GenerateStream>, JobEnd>>;

  void start_chats();
  void run_chats();
  void run_line(Line& line);
  void run_deadlines();
  void handle(Line& line, const Waiting& waiting);
  static void tell(Ended& ended);
  // With the lock held.
  static void sweep_line(Line& line, SteadyTime now, Ended& ended);
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  Result<std::unique_ptr<Job>> make_job(const v1::GenerateRequest& request);
  Result<std::vector<TokenId>> tokens_of(const v1::GenerateRequest& request);
  Result<std::vector<TokenId>> chat_tokens(const v1::ChatInput& chat);

  LaneRunner& runner_;
  std::string template_source_;
  const Engine* engine_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  Line chats_;
  Line others_;
  std::optional<std::uint32_t> longest_token_bytes_;
  bool stopped_ = false;  // requests are refused
  bool ending_ = false;   // the threads end

  std::optional<Result<ChatTemplate>> template_;  // the chats' thread
  std::optional<pthread_t> chats_thread_;         // with a large stack, unlike any std::thread
  std::thread others_thread_;
  std::thread deadlines_thread_;
};

}  // namespace berth::worker
