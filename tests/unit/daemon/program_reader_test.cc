#include "supervisor/program_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/process/launch_error.h"
#include "tests/simulation/sim_clock.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr const char* kPath = "/usr/bin:/bin";

// The files that were read in the watched directory, in their order.
std::vector<std::string> names_read(int inotify) {
  std::vector<std::string> names;
  alignas(inotify_event) std::array<char, 4096> part{};
  const ssize_t got = ::read(inotify, part.data(), part.size());
  for (ssize_t at = 0; at < got;) {
    const auto* const event =
        reinterpret_cast<const inotify_event*>(&part.at(static_cast<std::size_t>(at)));
    names.emplace_back(event->name);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  return names;
}

// Starting it then waits for no disk.
TEST(FindProgram, L27_TheProgramAndItsInterpretersAreRead) {
  const TempDir dir;
  std::ofstream(dir.file("runtime")) << "\177ELF";
  std::ofstream(dir.file("wrapper")) << "#! " << dir.file("runtime") << " -x\n";
  std::ofstream(dir.file("serve")) << "#!" << dir.file("wrapper");
  for (const char* const name : {"runtime", "wrapper", "serve"}) {
    ASSERT_EQ(::chmod(dir.file(name).c_str(), S_IRWXU), 0);
  }
  const UniqueFd reads(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(reads.get(), dir.path().c_str(), IN_ACCESS), 0);
  const auto found = find_program({dir.file("serve"), "", kPath});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(names_read(reads.get()), (std::vector<std::string>{"serve", "wrapper", "runtime"}));

  // One that is its own interpreter, or has none, ends.
  std::ofstream(dir.file("serve")) << "#!" << dir.file("serve") << "\n";
  EXPECT_TRUE(find_program({dir.file("serve"), "", kPath}));
  for (const char* const text : {"#!", "#!   \n", "#! sh\n", "", "\n"}) {
    std::ofstream(dir.file("serve")) << text;
    EXPECT_TRUE(find_program({dir.file("serve"), "", kPath})) << text;
  }
}

TEST(FindProgram, L27_AMissingProgramIsNamed) {
  auto found = find_program({"sh", "", kPath});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, "/usr/bin/sh");
  found = find_program({"vllm-not-here", "", kPath});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().reason, Reason::kLoadFailed);
  EXPECT_EQ(found.error().message,
            "no such program: \"vllm-not-here\"; it is in no directory of PATH");
  found = find_program({"/nonexistent/vllm", "", kPath});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("no such program"));

  const TempDir dir;
  std::ofstream(dir.file("plain")) << "x";
  found = find_program({dir.file("plain"), "", kPath});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("no program that can be executed"));

  // A relative path is below the working directory.
  ASSERT_EQ(::chmod(dir.file("plain").c_str(), S_IRWXU), 0);
  found = find_program({"./plain", dir.path(), kPath});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, dir.file("plain"));
  found = find_program({"./plain", "/nonexistent", kPath});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("working directory"));
}

std::string class_of(const Error& error) {
  if (!error.extras || !error.extras->failure) return "";
  return error.extras->failure->failure_class;
}

// Threads that work when the test says so.
class ProgramReaderTest : public ::testing::Test {
 protected:
  void read(const std::string& name) {
    reader_->read({name, "", kPath}, [this, name](Result<std::string> found) {
      answers_.emplace_back(name, found ? *found : class_of(found.error()));
      last_message_ = found ? "" : found.error().message;
    });
  }
  // The file system of that program answers.
  void answer(const std::string& name) {
    for (auto at = threads_.begin(); at != threads_.end(); ++at) {
      if (at->first != name) continue;
      const auto work = std::move(at->second);
      threads_.erase(at);
      work();
      clock_.settle();
      return;
    }
    ADD_FAILURE() << name << " has no thread";
  }

  using Answers = std::vector<std::pair<std::string, std::string>>;
  sim::SimClock clock_{1};
  std::vector<std::pair<std::string, std::function<void()>>> threads_;
  std::optional<Error> no_thread_;
  Answers answers_;
  std::string last_message_;
  std::unique_ptr<ProgramReader> reader_ = std::make_unique<ProgramReader>(
      clock_, ProgramReader::Options{.deadline = 30s,
                                     .most = 2,
                                     .find = [](const ProgramPlace& place) -> Result<std::string> {
                                       return "/found/" + place.name;
                                     },
                                     .run_alone = [this](const ProgramPlace& place,
                                                         std::function<void()> work) -> Status {
                                       if (no_thread_) return fail(*no_thread_);
                                       threads_.emplace_back(place.name, std::move(work));
                                       return {};
                                     }});
};

TEST_F(ProgramReaderTest, L7_WhileALookIsLateTheNextFailsAtOnce) {
  read("hung");
  clock_.advance(29s);
  EXPECT_EQ(answers_, Answers{});
  clock_.advance(1s);
  EXPECT_EQ(answers_, (Answers{{"hung", "timeout"}}));
  EXPECT_EQ(last_message_,
            "the program \"hung\" cannot be read: its file system has not answered for 30.0 s");
  clock_.advance(60s);
  read("hung");
  EXPECT_EQ(answers_.size(), 1U) << "never from within the call";
  clock_.settle();
  EXPECT_EQ(answers_, (Answers{{"hung", "timeout"}, {"hung", "timeout"}}));
  EXPECT_THAT(last_message_, HasSubstr("has not answered for 1 min 30 s"));
  EXPECT_EQ(threads_.size(), 1U) << "no second thread for what hangs";
  // It came back: what it found is nobody's any more, and the next look is a new one.
  answer("hung");
  EXPECT_EQ(answers_.size(), 2U);
  read("hung");
  answer("hung");
  EXPECT_EQ(answers_.back(), (std::pair<std::string, std::string>{"hung", "/found/hung"}));
}

TEST_F(ProgramReaderTest, L25_AnotherProgramIsReadMeanwhile) {
  read("hung");
  read("well");
  answer("well");
  EXPECT_EQ(answers_, (Answers{{"well", "/found/well"}}));
  clock_.advance(1h);
  read("well");
  answer("well");
  EXPECT_EQ(answers_.size(), 3U);
}

TEST_F(ProgramReaderTest, L5_TwoLoadsOfOneProgramShareALook) {
  read("slow");
  clock_.advance(5s);
  read("slow");
  EXPECT_EQ(threads_.size(), 1U);
  answer("slow");
  EXPECT_EQ(answers_, (Answers{{"slow", "/found/slow"}, {"slow", "/found/slow"}}));
  clock_.advance(1h);
  EXPECT_EQ(answers_.size(), 2U);
}

TEST_F(ProgramReaderTest, L7_ThreadsAreBoundedAndTheRestWaitsItsTurnOrItsDeadline) {
  read("hung 1");
  read("hung 2");
  read("turn");
  clock_.advance(10s);
  read("late");
  EXPECT_EQ(threads_.size(), 2U);
  answer("hung 1");
  ASSERT_EQ(threads_.size(), 2U);
  EXPECT_EQ(threads_.back().first, "turn");
  clock_.advance(1min);
  // Two have the same deadline.
  std::ranges::sort(answers_);
  EXPECT_EQ(answers_, (Answers{{"hung 1", "/found/hung 1"},
                               {"hung 2", "timeout"},
                               {"late", "timeout"},
                               {"turn", "timeout"}}));
  EXPECT_EQ(last_message_,
            "the program \"late\" was not looked for: other file systems that do not answer hold "
            "all threads for 30.0 s");
  // It had no thread, so that it is no place that hangs.
  answer("turn");
  read("late");
  answer("late");
  EXPECT_EQ(answers_.back().second, "/found/late");
}

TEST_F(ProgramReaderTest, L21_WithoutAThreadItIsAResourceFailure) {
  no_thread_ = process::launch_error("starting a thread", EAGAIN);
  read("a");
  EXPECT_EQ(answers_, Answers{});
  clock_.settle();
  EXPECT_EQ(answers_, (Answers{{"a", "resource"}}));
  no_thread_.reset();
  read("a");
  answer("a");
  EXPECT_EQ(answers_.back().second, "/found/a");
}

TEST_F(ProgramReaderTest, L1_WhatIsFoundAfterItsEndIsDropped) {
  read("a");
  read("b");
  answer("b");
  const auto late = std::move(threads_.front().second);
  reader_.reset();
  late();
  clock_.advance(1h);
  EXPECT_EQ(answers_, (Answers{{"b", "/found/b"}}));
}

TEST(ProgramReader, L25_ARealThreadThatHangsHoldsUpNobody) {
  boost::asio::io_context io{1};
  process::AsioClock clock{io};
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::promise<void> left;
  std::optional<Result<std::string>> found;
  std::optional<Result<std::string>> hung;
  {
    ProgramReader reader(clock, {.find = [&left, released](const ProgramPlace& place) {
                           if (place.name != "hung") return find_program(place);
                           released.wait();
                           left.set_value();
                           return Result<std::string>("never");
                         }});
    reader.read({"hung", "", kPath}, [&hung](Result<std::string> got) { hung = std::move(got); });
    reader.read({"sh", "", kPath}, [&found](Result<std::string> got) { found = std::move(got); });
    EXPECT_TRUE(testing::run_until(io, [&found] { return found.has_value(); }));
  }
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(**found, "/usr/bin/sh");
  release.set_value();
  left.get_future().wait();
  EXPECT_FALSE(hung);
}

}  // namespace
}  // namespace berth
