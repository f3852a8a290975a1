#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/worker/worker_process.h"

namespace berth::worker {

// What an answer's pieces are together.
struct Answer {
  Outcome outcome;
  std::string reasoning;
  std::vector<v1::ToolCall> calls;
  std::vector<v1::TokenLogprobs> logprobs;
};

inline Answer answer_of(WorkerProcess& worker, const v1::GenerateRequest& request) {
  Answer answer;
  answer.outcome = worker.generate(request, [&](const auto& event, auto& /*context*/) {
    const auto& piece = event.token();
    answer.reasoning += piece.reasoning();
    answer.logprobs.insert(answer.logprobs.end(), piece.logprobs().begin(), piece.logprobs().end());
    for (const auto& call : piece.tool_calls()) {
      if (call.index() >= answer.calls.size()) answer.calls.resize(call.index() + 1);
      auto& to = answer.calls[call.index()];
      to.set_id(to.id() + call.id());
      to.set_name(to.name() + call.name());
      to.set_arguments(to.arguments() + call.arguments());
    }
  });
  return answer;
}

// How a unary call ended.
template <typename Response>
struct Reply {
  Response response;
  grpc::Status status;
  std::optional<v1::ErrorDetail> error;  // of the trailer
};

// reply<Response>(worker, &v1::Worker::Stub::Tokenize, request)
template <typename Response, typename Request>
Reply<Response> reply(WorkerProcess& worker,
                      grpc::Status (v1::Worker::Stub::*call)(grpc::ClientContext*, const Request&,
                                                             Response*),
                      const Request& request, std::chrono::milliseconds patience = kPatience) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  Reply<Response> made;
  made.status = (worker.stub().*call)(&context, request, &made.response);
  const auto& trailers = context.GetServerTrailingMetadata();
  if (const auto trailer = trailers.find("berth-error-bin"); trailer != trailers.end()) {
    v1::ErrorDetail detail;
    EXPECT_TRUE(
        detail.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size())));
    EXPECT_EQ(detail.message(), made.status.error_message());
    made.error = detail;
  }
  return made;
}

// A directory of one test.
class Scratch {
 public:
  Scratch() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

 private:
  std::string directory_;
};

}  // namespace berth::worker
