#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/gateway/generation.h"
#include "tests/unit/gateway/gateway_world.h"

namespace berth::gateway {

// A client that keeps what it is told.
class Client : public Responder {
 public:
  explicit Client(std::size_t room = 1'000'000) : room_(room) {}

  void on_accepted(const std::string& model) override {
    EXPECT_TRUE(accepted.empty()) << "accepted twice";
    accepted = model;
  }
  void on_waiting(const residency::ClaimProgress& progress) override {
    EXPECT_FALSE(over());
    waits.push_back(progress);
  }
  bool on_prefill(const core::PrefillEvent& /*prefill*/) override { return true; }
  bool on_token(core::TokenEvent token) override {
    EXPECT_FALSE(over());
    text += token.text;
    ++tokens;
    return tokens < room_;
  }
  void on_finished(const Finished& end) override {
    EXPECT_FALSE(over());
    finished = end;
  }
  void on_failed(const Error& error) override {
    EXPECT_FALSE(over());
    failed = error;
  }
  [[nodiscard]] bool over() const { return finished || failed; }

  std::string accepted;
  std::vector<residency::ClaimProgress> waits;
  std::string text;
  std::size_t tokens = 0;
  std::optional<Finished> finished;
  std::optional<Error> failed;

 private:
  std::size_t room_;
};

inline std::vector<std::shared_ptr<const catalog::Model>> generation_models() {
  auto demo = sim::make_model("demo");
  demo->aliases = {"gpt"};
  auto program = sim::make_model("program");
  program->settings.kind = catalog::Kind::kCommand;
  return {demo, sim::make_model("other"), program};
}

class GenerationTest : public testing::Test, protected GatewayWorld {
 protected:
  GenerationTest() : GatewayWorld(generation_models()) {}

  std::shared_ptr<Generation> ask(std::shared_ptr<Client> client, const std::string& model = "demo",
                                  Duration timeout = std::chrono::minutes(10)) {
    core::GenerateRequest request;
    request.request_id = "r-1";
    request.model = model;
    request.input = core::PromptInput{"Hello"};
    return Generation::start(services_, {}, std::move(request), world_.clock.now() + timeout,
                             std::move(client));
  }
  // Lets the world run until the client has got its last call.
  bool run(const Client& client, Duration at_most = std::chrono::minutes(1)) {
    return world_.clock.run_until([&] { return client.over(); }, at_most);
  }
};

}  // namespace berth::gateway
