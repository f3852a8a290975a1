#include "supervisor/process/log_watch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/process/asio_clock.h"
#include "supervisor/process/file_log_watcher.h"
#include "supervisor/process/log_cut.h"
#include "tests/unit/process/file_size_limit.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

namespace asio = boost::asio;
using core::FailureClass;
using core::LogVerdict;
using testing::append;
using testing::TempDir;

const std::string kTraceback =
    "Traceback (most recent call last):\n"
    "  File \"load.py\", line 7, in load\n"
    "ValueError: Model type zebra not supported\n";
constexpr const char* kNative = "GGML_ASSERT(n_tokens > 0) failed\n";

// Waits on a copy of the descriptor, which is closed with the wait.
class Readable : public Timer::Impl {
 public:
  Readable(asio::io_context& io, int fd, std::function<void()> callback)
      : copy_(io, ::dup(fd)), callback_(std::make_shared<std::function<void()>>(callback)) {
    copy_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [weak = std::weak_ptr(callback_)](const boost::system::error_code& failed) {
                       const auto told = weak.lock();
                       if (!failed && told) (*told)();
                     });
  }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;
  ~Readable() override = default;

 private:
  asio::posix::stream_descriptor copy_;
  std::shared_ptr<std::function<void()>> callback_;
};

class LogWatchTest : public ::testing::Test {
 protected:
  ~LogWatchTest() override {
    watch_.reset();
    pool_.join();
  }

  void start(std::uint64_t offset = 0, bool use_inotify = true) {
    FileLogWatcher watcher(
        {.clock = clock_,
         .run_blocking =
             [this](std::function<void()> work) {
               ++steps_;
               asio::post(pool_, std::move(work));
             },
         .on_readable =
             [this](int fd, std::function<void()> callback) {
               ++waits_;
               return Timer(std::make_unique<Readable>(io_, fd, std::move(callback)));
             },
         .use_inotify = use_inotify,
         .on_cut = [this](const std::string& model,
                          std::uint64_t size_before) { cuts_.emplace_back(model, size_before); },
         .on_uncut = [this](const std::string& model,
                            const std::string& problem) { uncut_.emplace_back(model, problem); },
         .cut_over = cut_over_,
         .cut_keeps = 1000});
    watch_ = watcher.watch({path_, offset, "demo"}, fatal_, [this](LogVerdict verdict) {
      ++verdicts_;
      verdict_ = std::move(verdict);
    });
  }
  // Until the watch waits for something to be written, with all that is there read.
  void settle() {
    const int waits = waits_;
    ASSERT_TRUE(testing::run_until(io_, [&] { return waits_ > waits; }));
  }
  std::optional<LogVerdict> await_verdict() {
    EXPECT_TRUE(testing::run_until(io_, [&] { return verdicts_ > 0; }));
    return verdict_;
  }
  std::optional<LogVerdict> finish() {
    int answers = 0;
    std::optional<LogVerdict> last;
    watch_->finish([&](std::optional<LogVerdict> verdict) {
      ++answers;
      last = std::move(verdict);
    });
    EXPECT_EQ(answers, 0) << "no answer from within the call";
    EXPECT_TRUE(testing::run_until(io_, [&] { return answers > 0; }));
    EXPECT_EQ(answers, 1);
    return last;
  }

  TempDir dir_;
  std::string path_ = dir_.file("m.log");
  std::vector<std::string> fatal_ = core::default_fatal_exceptions();
  asio::io_context io_{1};
  AsioClock clock_{io_};
  asio::thread_pool pool_{2};
  std::uint64_t cut_over_ = kLongestLiveLog;
  std::vector<std::pair<std::string, std::uint64_t>> cuts_;  // models, sizes before
  std::vector<std::pair<std::string, std::string>> uncut_;   // models, problems
  int steps_ = 0;
  int waits_ = 0;
  int verdicts_ = 0;
  std::optional<LogVerdict> verdict_;
  std::unique_ptr<LogWatch> watch_;
};

TEST_F(LogWatchTest, L7_L11_ATracebackAndThenSilenceIsAVerdict) {
  append(path_, "loading\n");
  start();
  settle();
  append(path_, kTraceback);
  const auto verdict = await_verdict();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->failure_class, FailureClass::kPermanent);
  EXPECT_EQ(verdict->exception, "ValueError");
  EXPECT_EQ(verdict->reason, "ValueError: Model type zebra not supported");
  EXPECT_EQ(verdict->line, 4U);
}

TEST_F(LogWatchTest, L11_ReadingStartsWhereTheInstanceBegan) {
  append(path_, kTraceback);
  start(kTraceback.size());
  settle();
  append(path_, "all is well\n");
  settle();
  append(path_, kNative);
  const auto verdict = await_verdict();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->failure_class, FailureClass::kCrash);
  EXPECT_EQ(verdict->line, 2U);
}

TEST_F(LogWatchTest, L11_WithoutInotifyTheFileIsPolled) {
  append(path_, "");
  start(0, false);
  append(path_, kNative);
  EXPECT_TRUE(await_verdict());
  EXPECT_EQ(waits_, 0);
}

TEST_F(LogWatchTest, L11_AMissingFileIsNoVerdictAndMayCome) {
  start();
  ASSERT_TRUE(testing::run_until(io_, [&] { return steps_ > 1; })) << "it is looked for again";
  append(path_, kNative);
  EXPECT_TRUE(await_verdict());
}

TEST_F(LogWatchTest, L11_WhatIsNoRegularFileIsNoVerdict) {
  append(dir_.file("target"), kNative);
  std::filesystem::create_symlink(dir_.file("target"), path_);
  start();
  EXPECT_FALSE(finish()) << "links are not followed";
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), S_IRUSR | S_IWUSR), 0);
  start();
  EXPECT_FALSE(finish()) << "nobody waits for a pipe";
  std::filesystem::remove(path_);
  start();
  EXPECT_FALSE(finish()) << "missing";
}

TEST_F(LogWatchTest, L12_OnlyWholeLinesCount) {
  append(path_, "GGML_ASSERT(n_tok");
  start();
  settle();
  append(path_, "ens > 0) failed");
  settle();
  EXPECT_EQ(verdicts_, 0);
  append(path_, "\n");
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->reason, "GGML_ASSERT(n_tokens > 0) failed");
}

TEST_F(LogWatchTest, L12_AnUnterminatedLastLineDoesNotCountAtTheExit) {
  append(path_, "GGML_ASSERT(n_tokens > 0) failed");
  start();
  EXPECT_FALSE(finish());
}

TEST_F(LogWatchTest, L13_OfChainedExceptionsTheLastIsTheVerdict) {
  append(path_, "");
  start();
  settle();
  append(path_,
         "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
         "ModuleNotFoundError: No module named 'zebra'\n\n"
         "The above exception was the direct cause of the following exception:\n\n" +
             kTraceback);
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->exception, "ValueError");
}

TEST_F(LogWatchTest, L13_TheExitSpeaksTheLineThatIsHeld) {
  append(path_, "");
  start();
  settle();
  append(path_, kTraceback);
  const auto verdict = finish();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->exception, "ValueError");
  EXPECT_EQ(verdicts_, 0) << "it is told once";
}

TEST_F(LogWatchTest, L14_TheModelsOwnNamesCount) {
  fatal_ = {"ZebraError"};
  append(path_, kTraceback);
  start();
  settle();
  append(path_, "Traceback (most recent call last):\n  File \"a.py\", line 1\nZebraError: no\n");
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->exception, "ZebraError");
}

std::string flood(std::size_t bytes) {
  const std::string line = "INFO 12:00:00 tokenizer: something that says nothing at all\n";
  std::string text;
  while (text.size() < bytes) text += line;
  return text;
}

TEST_F(LogWatchTest, D2_EveryByteOfAFloodIsSeen) {
  // In the middle, across the border of a step, and far from what a tail would keep.
  std::string text = flood(5UL << 20U);
  text.resize(text.rfind('\n', (3UL << 20U) - 8) + 1);
  append(path_, text + kNative + flood(4UL << 20U));
  start();
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->failure_class, FailureClass::kCrash);
  EXPECT_GE(steps_, 3) << "a bounded step at a time";
}

TEST_F(LogWatchTest, D2_EveryByteIsSeenAtTheExitToo) {
  append(path_, flood(5UL << 20U) + kTraceback);
  start();
  const auto verdict = finish();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->exception, "ValueError");
}

TEST_F(LogWatchTest, L10_ACutFileIsReadOnAtTheSameBytes) {
  append(path_, flood(4000));
  start();
  settle();
  append(path_, "GGML_ASSERT(n_tok");
  ASSERT_TRUE(trim_live(path_, 1000, 400)->cut);
  settle();
  append(path_, "ens > 0) failed\n");
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->reason, "GGML_ASSERT(n_tokens > 0) failed");
}

TEST_F(LogWatchTest, L10_ALogThatIsReadIsCutWhenItIsTooLong) {
  cut_over_ = 10'000;
  append(path_, flood(9000));
  start();
  settle();
  EXPECT_TRUE(cuts_.empty());
  append(path_, flood(4000) + "GGML_ASSERT(n_tok");
  const std::uint64_t size = std::filesystem::file_size(path_);
  settle();
  ASSERT_EQ(cuts_.size(), 1U) << "one event for each cut";
  EXPECT_EQ(cuts_.front(), std::pair(std::string("demo"), size));
  EXPECT_LT(std::filesystem::file_size(path_), 1100U);
  append(path_, "ens > 0) failed\n");
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->reason, "GGML_ASSERT(n_tokens > 0) failed") << "no byte is lost to it";
  EXPECT_EQ(cuts_.size(), 1U);
}

TEST_F(LogWatchTest, L10_ALogThatCannotBeCutIsToldAndReadOn) {
  cut_over_ = 10'000;
  append(path_, flood(13'000) + kNative);
  {
    const testing::FileSizeLimit nothing(0);
    start();
    ASSERT_TRUE(await_verdict());
  }
  ASSERT_EQ(uncut_.size(), 1U);
  EXPECT_EQ(uncut_.front().first, "demo");
  EXPECT_NE(uncut_.front().second, "");
  EXPECT_TRUE(cuts_.empty());
}

TEST_F(LogWatchTest, L10_TheExitCutsTheLogToo) {
  cut_over_ = 10'000;
  append(path_, "");
  start();
  settle();
  append(path_, flood(30'000) + kTraceback);
  const auto verdict = finish();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->exception, "ValueError");
  EXPECT_EQ(cuts_.size(), 1U);
  EXPECT_LT(std::filesystem::file_size(path_), 1100U);
}

TEST_F(LogWatchTest, L10_WhatIsNotReadYetIsReadBeforeTheCut) {
  // More than one step reads, and more than is kept.
  cut_over_ = 2UL << 20U;
  std::string text = flood(3UL << 20U);
  const std::size_t middle = text.find('\n', text.size() / 2) + 1;
  text.insert(middle, kNative);
  append(path_, text);
  start();
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->failure_class, FailureClass::kCrash);
}

TEST_F(LogWatchTest, L10_AReaderThatWasLeftBehindGluesNoLines) {
  append(path_, flood(30'000) + "GGML_ASSERT(n_tok");
  start();
  settle();
  append(path_, "x\n" + flood(30'000));
  ASSERT_TRUE(trim_live(path_, 10'000, 1000)->cut);
  append(path_, "ens > 0) failed\nall is well\n");
  settle();
  EXPECT_EQ(verdicts_, 0);
  append(path_, kNative);
  EXPECT_TRUE(await_verdict());
}

TEST_F(LogWatchTest, L10_AnEmptiedFileBeginsAnew) {
  append(path_, flood(4000));
  start();
  settle();
  std::filesystem::resize_file(path_, 0);
  settle();
  append(path_, kNative);
  EXPECT_TRUE(await_verdict());
}

TEST_F(LogWatchTest, L11_TheFileThatTheChildHoldsCountsNotTheOneThatTookItsName) {
  std::ofstream child(path_, std::ios::binary | std::ios::app);
  start();
  settle();
  std::filesystem::rename(path_, path_ + ".1");
  append(path_, kTraceback);
  child << kNative << std::flush;
  ASSERT_TRUE(await_verdict());
  EXPECT_EQ(verdict_->failure_class, FailureClass::kCrash);
}

TEST_F(LogWatchTest, TheVerdictMayEndTheWatch) {
  append(path_, kNative);
  bool told = false;
  start();
  FileLogWatcher watcher(
      {.clock = clock_,
       .run_blocking = [this](std::function<void()> work) { asio::post(pool_, std::move(work)); },
       .on_readable = nullptr});
  watch_ = watcher.watch({path_, 0, "demo"}, fatal_, [&](const LogVerdict& /*verdict*/) {
    watch_.reset();
    told = true;
  });
  EXPECT_TRUE(testing::run_until(io_, [&] { return told; }));
  EXPECT_EQ(verdicts_, 0) << "the watch that was dropped first says nothing";
}

}  // namespace
}  // namespace berth::process
