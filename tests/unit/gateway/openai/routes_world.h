#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/gateway/openai/routes.h"
#include "tests/unit/gateway/gateway_world.h"
#include "tests/unit/gateway/openai/fake_reply.h"

namespace berth::gateway::openai {

// One request and its answer.
struct Asked {
  std::shared_ptr<FakeReply> reply = std::make_shared<FakeReply>();
  std::shared_ptr<Handler> handler;

  [[nodiscard]] boost::json::value body() const {
    return reply->sent ? boost::json::parse(reply->sent->body) : boost::json::value();
  }
  [[nodiscard]] int status() const { return reply->sent ? reply->sent->status : 0; }
};

inline std::vector<std::shared_ptr<const catalog::Model>> models() {
  auto demo = sim::make_model("demo");
  demo->aliases = {"gpt-4o-mini"};
  demo->served_context = 4096;
  demo->can_chat = true;
  demo->can_embed = true;
  auto broken = sim::make_model("broken");
  broken->problem = "It is cut off.";
  auto program = sim::make_model("program");
  program->settings.kind = catalog::Kind::kCommand;
  return {demo, broken, program, sim::make_model("org/name")};
}

class RoutesTest : public testing::Test, protected GatewayWorld {
 protected:
  RoutesTest() : GatewayWorld(models()) {}

  Asked start(const std::string& method, const std::string& pattern, HttpRequest request) {
    Asked asked;
    request.id = "r-1";
    for (const Route& route : routes(services_)) {
      if (route.method != method || route.pattern != pattern) continue;
      asked.handler = route.start(std::move(request), asked.reply);
      return asked;
    }
    ADD_FAILURE() << "no route " << method << " " << pattern;
    return asked;
  }
  Asked post(const std::string& path, std::string body) {
    HttpRequest request;
    request.method = "POST";
    request.path = path;
    request.body = std::move(body);
    return start("POST", path, std::move(request));
  }
  Asked chat(std::string_view members = "") {
    return post("/v1/chat/completions",
                R"({"model":"demo","messages":[{"role":"user","content":"Hi"}])" +
                    std::string(members) + "}");
  }
  Asked get(const std::string& pattern, const std::string& argument = "") {
    HttpRequest request;
    request.method = "GET";
    if (!argument.empty()) request.arguments = {argument};
    Asked asked = start("GET", pattern, std::move(request));
    world_.clock.settle();
    return asked;
  }
  bool run(const Asked& asked, Duration at_most = std::chrono::minutes(1)) {
    return world_.clock.run_until([&] { return asked.reply->over(); }, at_most);
  }
  void script(const sim::WorkerScript& script) {
    world_.workers.set_script([script](const std::string&) { return script; });
  }
};

}  // namespace berth::gateway::openai
