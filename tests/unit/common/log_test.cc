#include "common/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/fd.h"
#include "common/line_output.h"
#include "tests/unit/common/temp_dir.h"

namespace berth {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
      reader = UniqueFd(ends[0]);
      writer = UniqueFd(ends[1]);
    }
  }
  UniqueFd reader;
  UniqueFd writer;
};

std::string read_to_end(int fd) {
  std::string all;
  std::array<char, 65'536> part{};
  ssize_t got = 0;
  while ((got = ::read(fd, part.data(), part.size())) > 0) {
    all.append(part.data(), static_cast<std::size_t>(got));
  }
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Event numbered(std::int64_t number) {
  return events::to_event(events::ServerStopped{.took_ms = number});
}

std::unique_ptr<LogWriter> start(LogOptions options) {
  auto writer = LogWriter::start(options);
  EXPECT_TRUE(writer.has_value());
  return std::move(*writer);
}

TEST(LogWriter, WritesLogfmtInOrder) {
  Pipe pipe;
  auto log = start({.fd = pipe.writer.get()});
  for (int i = 0; i < 100; ++i) log->write(numbered(i));
  log->close();
  pipe.writer.reset();
  const auto lines = lines_of(read_to_end(pipe.reader.get()));
  ASSERT_EQ(lines.size(), 100U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(lines[i].ends_with("Z info server.stopped took_ms=" + std::to_string(i)))
        << lines[i];
  }
  EXPECT_EQ(log->dropped(), 0U);
}

TEST(LogWriter, WritesJson) {
  Pipe pipe;
  auto log = start({.format = LogFormat::kJson, .fd = pipe.writer.get()});
  Event event = numbered(3);
  event.time = WallTime(std::chrono::milliseconds(1'000));
  log->write(event);
  log->close();
  pipe.writer.reset();
  EXPECT_EQ(read_to_end(pipe.reader.get()),
            "{\"time\":\"1970-01-01T00:00:01.000Z\",\"level\":\"info\","
            "\"event\":\"server.stopped\",\"took_ms\":3}\n");
}

TEST(LogWriter, LeavesOutWhatIsBelowTheMinimum) {
  Pipe pipe;
  auto log = start({.minimum = Level::kWarning, .fd = pipe.writer.get()});
  log->write(numbered(1));
  log->write(events::to_event(events::ServerDegraded{.part = "x", .problem = "y"}));
  log->close();
  pipe.writer.reset();
  const auto lines = lines_of(read_to_end(pipe.reader.get()));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("warning server.degraded part=x problem=y"), std::string::npos);
  EXPECT_EQ(log->dropped(), 0U);
}

TEST(LogWriter, ColoursOnATerminalOnly) {
  UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master);
  ASSERT_EQ(::grantpt(master.get()), 0);
  ASSERT_EQ(::unlockpt(master.get()), 0);
  std::array<char, 64> name{};
  ASSERT_EQ(::ptsname_r(master.get(), name.data(), name.size()), 0);
  UniqueFd terminal(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  ::unsetenv("NO_COLOR");        // NOLINT(concurrency-mt-unsafe)
  ::setenv("TERM", "xterm", 1);  // NOLINT(concurrency-mt-unsafe)
  auto log = start({.fd = terminal.get()});
  log->write(numbered(1));
  log->close();
  std::array<char, 4096> shown{};
  const ssize_t got = ::read(master.get(), shown.data(), shown.size());
  ASSERT_GT(got, 0);
  EXPECT_NE(std::string(shown.data(), static_cast<std::size_t>(got)).find("\x1b[32minfo"),
            std::string::npos);
}

TEST(LogWriter, ABlockedPipeNeverStopsTheCaller) {
  constexpr std::int64_t kWritten = 20'000;  // more than the pipe and the queue hold
  Pipe pipe;
  auto log = start({.fd = pipe.writer.get(), .queue_lines = 64});
  for (std::int64_t i = 1; i <= kWritten; ++i) log->write(numbered(i));
  EXPECT_GT(log->dropped(), 0U);

  std::string all;
  std::thread reader([&] { all = read_to_end(pipe.reader.get()); });
  log->close(std::chrono::hours(1));
  pipe.writer.reset();
  reader.join();

  const auto lines = lines_of(all);
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines.back().ends_with("took_ms=" + std::to_string(kWritten)));
  std::int64_t kept = 0;
  std::int64_t reported = 0;
  for (const std::string& line : lines) {
    const std::size_t at = line.find("log.dropped lines=");
    if (at == std::string::npos) {
      ++kept;
    } else {
      reported += std::stoll(line.substr(at + 18));
    }
  }
  EXPECT_EQ(kept + static_cast<std::int64_t>(log->dropped()), kWritten);
  EXPECT_EQ(reported, static_cast<std::int64_t>(log->dropped()));
}

TEST(LogWriter, ClosesThoughNobodyReads) {
  Pipe pipe;
  auto log = start({.fd = pipe.writer.get(), .queue_lines = 64});
  for (int i = 0; i < 10'000; ++i) log->write(numbered(i));
  log->close(std::chrono::milliseconds(1));
  EXPECT_GT(log->dropped(), 0U);
  log->write(numbered(1));  // too late
  log->close();
}

TEST(LogWriter, AClosedPipeIsNoSignal) {
  Pipe pipe;
  auto log = start({.fd = pipe.writer.get()});
  pipe.reader.reset();
  for (int i = 0; i < 10; ++i) log->write(numbered(i));
  log->close();
  EXPECT_EQ(log->dropped(), 10U);
}

TEST(LogWriter, AFullDiskIsCounted) {
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) GTEST_SKIP() << "no /dev/full here";
  auto log = start({.fd = full.get()});
  for (int i = 0; i < 10; ++i) log->write(numbered(i));
  log->close();
  EXPECT_EQ(log->dropped(), 10U);
}

TEST(LogWriter, TakesEventsFromManyThreads) {
  test::TempDir dir;
  UniqueFd file(::open(dir.file("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  auto log = start({.fd = file.get(), .queue_lines = 8192});
  constexpr std::size_t kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) log->write(numbered(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  log->close(std::chrono::hours(1));
  std::ifstream in(dir.file("log"));
  const std::string all(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(lines_of(all).size(), 4'000U);
  EXPECT_EQ(log->dropped(), 0U);
}

TEST(LineOutput, ACutLineDoesNotSwallowTheNext) {
  Pipe pipe;
  ASSERT_GT(::fcntl(pipe.writer.get(), F_SETPIPE_SZ, 4096), 0);
  LineOutput output(pipe.writer.get());
  output.give_up_at(SteadyTime{});  // long ago: nothing waits
  EXPECT_TRUE(output.write_line("first"));
  EXPECT_FALSE(output.write_line(std::string(10'000, 'x')));
  std::array<char, 8192> part{};
  std::string all;
  ssize_t got = ::read(pipe.reader.get(), part.data(), part.size());
  ASSERT_GT(got, 0);
  all.append(part.data(), static_cast<std::size_t>(got));
  EXPECT_TRUE(output.write_line("last"));
  pipe.writer.reset();
  all += read_to_end(pipe.reader.get());
  const auto lines = lines_of(all);
  EXPECT_EQ(lines.front(), "first");
  EXPECT_EQ(lines.back(), "last");
}

}  // namespace
}  // namespace berth
