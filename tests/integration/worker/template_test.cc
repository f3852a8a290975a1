// What hostile templates do to a worker: nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/worker/worker_process.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class HostileTemplate : public testing::Test {
 protected:
  HostileTemplate() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~HostileTemplate() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& source) {
    auto path = directory_ + "/template";
    std::ofstream(path) << source;
    return path;
  }

 private:
  std::string directory_;
};

TEST_F(HostileTemplate, L26_FailsItsRequestAndNeverTheWorker) {
  WorkerProcess worker(
      {tinychat(),
       {"--context", "512", "--chat-template",
        file("{% macro deep(n) %}{{ deep(n + 1) }}{% endmacro %}"
             "{% set wish = messages[0].content %}"
             "{% if wish == 'loop' %}{% for a in range(100000) %}{% for b in range(100000) %}"
             "{% endfor %}{% endfor %}"
             "{% elif wish == 'recursion' %}{{ deep(0) }}"
             "{% elif wish == 'output' %}{% set x = 'x' * 100000 %}{% for a in range(200) %}{{ x }}"
             "{% endfor %}"
             "{% elif wish == 'memory' %}{% set ns = namespace(all=['x' * 100000]) %}"
             "{% for a in range(100) %}{% set ns.all = ns.all + ns.all %}{% endfor %}"
             "{% endif %}{{ wish }}")}});
  const auto loaded = worker.wait_loaded();
  ASSERT_TRUE(loaded && loaded->has_ready()) << worker.log();
  const auto pid = worker.pid();
  for (const std::string wish : {"loop", "output", "recursion", "memory"}) {
    if (kSanitized && (wish == "recursion" || wish == "memory")) continue;
    const auto refused = worker.generate(greedy_chat(wish));
    ASSERT_TRUE(refused.error.has_value()) << wish;
    EXPECT_EQ(refused.error->reason(), "template_failed") << wish;
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << wish;
    const auto answered = worker.generate(greedy_chat("Hello"));
    EXPECT_TRUE(answered.status.ok()) << wish << ": " << answered.status.error_message();
  }
  EXPECT_EQ(worker.pid(), pid);
}

TEST_F(HostileTemplate, MissingProgramIsSaidAndNoReasonToEnd) {
  WorkerProcess worker({tinychat(), {"--context", "512", "--template-program", "/nowhere/x"}});
  const auto loaded = worker.wait_loaded();
  ASSERT_TRUE(loaded && loaded->has_ready()) << worker.log();
  const auto chat = worker.generate(greedy_chat("Hello"));
  ASSERT_TRUE(chat.error.has_value());
  EXPECT_THAT(chat.error->message(), HasSubstr("/nowhere/x"));
  EXPECT_TRUE(worker.generate(greedy_prompt("Hello")).status.ok());
}

}  // namespace
}  // namespace berth::worker
