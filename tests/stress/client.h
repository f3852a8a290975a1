#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "berth/v1/worker.grpc.pb.h"
#include "common/clock.h"
#include "tests/stress/call.h"

namespace berth::stress {

// A question and its one right answer.
struct Canary {
  v1::GenerateRequest request;
  std::string text;  // or, where the model embeds:
  v1::EmbedRequest embed;
  std::vector<float> vector;
};

// How a call ended: what is counted, and what was wrong.
struct Report {
  std::string result;
  std::vector<std::string> problems;
};

// Cancels calls at their time. One thread of its own.
class Canceller {
 public:
  Canceller();
  Canceller(const Canceller&) = delete;
  Canceller& operator=(const Canceller&) = delete;
  ~Canceller();

  // The context must live until forget().
  void cancel_after(grpc::ClientContext& context, Milliseconds delay);
  void forget(grpc::ClientContext& context);

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Time, grpc::ClientContext*> due_;
  bool ends_ = false;
  std::thread thread_;
};

// Waits that end when the run does.
class Patience {
 public:
  // Whether the run goes on.
  bool wait(Milliseconds time);
  void end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

// Makes calls on a channel of its own and looks at what comes back. One call at a time per thread;
// any number of threads.
class Client {
 public:
  // After this a call without a deadline hangs; those with one may be so much late.
  static constexpr Milliseconds kBound = std::chrono::seconds(240);

  Client(const std::string& socket, const Target& target, const std::vector<Canary>& canaries,
         Canceller& canceller, Patience& patience);

  Report make(const Call& call);
  // Greedy answers as they are now; for canaries. Nothing: the call failed.
  std::optional<std::string> answer(const v1::GenerateRequest& request);
  std::optional<std::vector<float>> vector(const v1::EmbedRequest& request);

 private:
  Report make(const GenerateCall& call, const Manners& manners);
  Report make(const CanaryCall& call, const Manners& manners);
  Report make(const EmbedCall& call, const Manners& manners);
  Report make(const TokenizeCall& call, const Manners& manners);
  Report make(const DetokenizeCall& call, const Manners& manners);

  std::unique_ptr<v1::Worker::Stub> stub_;
  const Target& target_;
  const std::vector<Canary>& canaries_;
  Canceller& canceller_;
  Patience& patience_;
};

}  // namespace berth::stress
