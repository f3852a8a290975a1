// Answers that come in pieces, and clients that go away.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "http_test_support.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;

const std::string kWait = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpStream : public HttpServerTest {
 protected:
  static HttpResponse head() {
    HttpResponse head;
    head.content_type = "text/event-stream";
    head.headers.push_back({"Cache-Control", "no-cache"});
    return head;
  }
};

TEST_F(HttpStream, PiecesComeAsTheyAreWritten) {
  RawClient reader = client();
  reader.send(kWait);
  Arrived request = next();
  request.reply->begin(head());
  const std::string begun = reader.read_until("\r\n\r\n");
  EXPECT_EQ(status_of(begun), "200");
  EXPECT_TRUE(has(begun, "\r\nTransfer-Encoding: chunked\r\n")) << begun;
  EXPECT_TRUE(has(begun, "\r\nCache-Control: no-cache\r\n")) << begun;
  EXPECT_TRUE(has(begun, "\r\nX-Request-Id: " + request.request.id + "\r\n")) << begun;
  EXPECT_TRUE(request.reply->write("data: 1\n\n"));
  EXPECT_EQ(reader.read_until("\n\n\r\n"), "9\r\ndata: 1\n\n\r\n");
  request.reply->write("two");
  request.reply->end();
  EXPECT_EQ(reader.read_until("0\r\n\r\n"), "3\r\ntwo\r\n0\r\n\r\n");
  // And the connection goes on.
  reader.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(reader.read_answer()), "200");
}

TEST_F(HttpStream, AnOldClientReadsUntilTheEnd) {
  RawClient reader = client();
  reader.send("GET /wait HTTP/1.0\r\nHost: localhost\r\n\r\n");
  Arrived request = next();
  request.reply->begin(head());
  request.reply->write("all");
  request.reply->end();
  const std::string answer = reader.read_all();
  EXPECT_FALSE(has(answer, "chunked")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nall")) << answer;
  EXPECT_FALSE(reader.was_reset());
}

TEST_F(HttpStream, ABrokenStreamHasNoEnd) {
  RawClient reader = client();
  reader.send(kWait);
  Arrived request = next();
  request.reply->begin(head());
  request.reply->write("part");
  request.reply->break_off();
  const std::string answer = reader.read_all();
  EXPECT_TRUE(answer.ends_with("4\r\npart\r\n")) << answer;

  RawClient old = client();
  old.send("GET /wait HTTP/1.0\r\nHost: localhost\r\n\r\n");
  request = next();
  request.reply->begin(head());
  old.read_until("\r\n\r\n");
  request.reply->break_off();
  EXPECT_EQ(old.read_all(), "");
  EXPECT_TRUE(old.was_reset());
}

TEST_F(HttpStream, AReplyThatIsDroppedIsAnError) {
  RawClient reader = client();
  reader.send(kWait);
  next();  // lets go of the reply
  EXPECT_EQ(status_of(reader.read_answer()), "500");
}

TEST_F(HttpStream, AHeadOfAStreamIsAllThereIs) {
  RawClient reader = client();
  reader.send("HEAD /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  Arrived request = next();
  request.reply->begin(head());
  EXPECT_TRUE(request.handler->wait_for_gone());
  EXPECT_EQ(status_of(reader.read_until("\r\n\r\n")), "200");
  reader.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(reader.read_answer()), "200");
}

TEST_F(HttpStream, T31_T35_AClientThatHangsUpIsNoticedAtOnce) {
  // Before any answer, and in a stream.
  RawClient early = client();
  early.send(kWait);
  Arrived request = next();
  early.close();
  EXPECT_TRUE(request.handler->wait_for_gone());
  request.reply->send({});  // does nothing

  RawClient late = client();
  late.send(kWait);
  request = next();
  request.reply->begin(head());
  late.read_until("\r\n\r\n");
  late.close();
  EXPECT_TRUE(request.handler->wait_for_gone());
  EXPECT_FALSE(request.reply->write("x"));
  request.reply->end();
}

TEST_F(HttpStream, AHalfClosedClientIsGone) {
  RawClient half = client();
  half.send(kWait);
  Arrived request = next();
  half.end_sending();
  EXPECT_TRUE(request.handler->wait_for_gone());
  // What can be answered at once still is.
  RawClient quick = client();
  quick.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  quick.end_sending();
  EXPECT_TRUE(quick.read_all().ends_with("open"));
}

TEST_F(HttpStream, APipelinedRequestIsNoHangUp) {
  RawClient eager = client();
  eager.send(kWait + kWait);
  Arrived first = next();
  first.reply->begin(head());
  first.reply->write("1");
  EXPECT_TRUE(has(eager.read_until("1\r\n1\r\n"), "1\r\n1\r\n"));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(waiting_.empty()) << "one after the other";
  }
  first.reply->end();
  Arrived second = next();
  second.reply->send({.body = "second"});
  EXPECT_TRUE(eager.read_until("second").starts_with("0\r\n\r\nHTTP/1.1 200 "));
}

TEST_F(HttpStream, WhatIsReadAheadIsBounded) {
  RawClient flood = client();
  flood.send(kWait);
  Arrived request = next();
  // More than any buffer of the kernel holds: the server has to stop reading.
  std::thread sender([&flood] {
    const std::string more(1 << 20, 'x');
    for (int i = 0; i < 64 && flood.send(more); ++i) {
    }
  });
  request.reply->send({.body = "first"});
  const std::string answer = flood.read_until("HTTP/1.1 431");
  flood.hang_up();
  sender.join();
  EXPECT_TRUE(has(answer, "first")) << answer.substr(0, 500);
}

TEST_F(HttpStream, ASlowClientStopsTheWriterAndGetsAll) {
  RawClient slow(server_->address(), 4096);
  slow.send(kWait);
  Arrived request = next();
  request.reply->begin(head());
  slow.read_until("\r\n\r\n");
  const std::string piece(8192, 'p');
  std::size_t written = 0;
  // Until the client's buffers, the kernel's and ours are full.
  const auto fill = [&] {
    bool room = true;
    while (room) {
      room = request.reply->write(piece);
      written += piece.size();
    }
  };
  fill();
  std::string read;
  std::thread reader([&slow, &read] { read = slow.read_until("\r\n0\r\n\r\n"); });
  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(request.handler->wait_for_room(round));
    fill();
  }
  request.reply->end();
  reader.join();
  EXPECT_EQ(static_cast<std::size_t>(std::count(read.begin(), read.end(), 'p')), written);
}

TEST_F(HttpStream, AClientThatTakesNothingIsGone) {
  HttpOptions options;
  options.limits.write_timeout = 200ms;
  serve(options);
  RawClient stuck(server_->address(), 4096);
  stuck.send(kWait);
  Arrived request = next();
  request.reply->begin(head());
  request.reply->write(std::string(16 << 20, 'x'));
  EXPECT_TRUE(request.handler->wait_for_gone());
}

TEST_F(HttpStream, ManyThreadsWriteManyStreams) {
  constexpr int kStreams = 50;
  constexpr int kPieces = 200;
  std::vector<RawClient> readers;
  std::vector<Arrived> requests;
  for (int i = 0; i < kStreams; ++i) {
    readers.push_back(client());
    readers.back().send(
        "GET /wait HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + std::to_string(i) + "\r\n\r\n");
    requests.push_back(next());
  }
  std::vector<std::thread> writers;
  for (int part = 0; part < 2; ++part) {
    writers.emplace_back([&requests, part] {
      for (int i = part; i < kStreams; i += 2) {
        requests[static_cast<std::size_t>(i)].reply->begin(head());
      }
      for (int n = 0; n < kPieces; ++n) {
        for (int i = part; i < kStreams; i += 2) {
          requests[static_cast<std::size_t>(i)].reply->write("<" + std::to_string(i) + ":" +
                                                             std::to_string(n) + ">");
        }
      }
      for (int i = part; i < kStreams; i += 2) requests[static_cast<std::size_t>(i)].reply->end();
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int i = 0; i < kStreams; ++i) {
    const std::string all = readers[static_cast<std::size_t>(i)].read_until("\r\n0\r\n\r\n");
    for (int n = 0; n < kPieces; ++n) {
      // Pieces are never cut, so that each is found whole.
      ASSERT_TRUE(has(all, "<" + std::to_string(i) + ":" + std::to_string(n) + ">")) << all;
    }
  }
}

TEST_F(HttpStream, TheServersEndTellsHandlers) {
  RawClient reader = client();
  reader.send(kWait);
  Arrived request = next();
  server_.reset();
  EXPECT_TRUE(request.handler->wait_for_gone());
  request.reply->send({});  // harms nobody
  EXPECT_EQ(reader.read_all(), "");
}

TEST_F(HttpStream, L29_ADrainRefusesAndLetsFinish) {
  RawClient idle = client();
  idle.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  idle.read_answer();
  RawClient running = client();
  running.send(kWait);
  Arrived request = next();
  server_->drain();
  EXPECT_EQ(idle.read_all(), "") << "idle connections end";
  const std::string refused = client().exchange("GET /items/1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(refused), "503");
  EXPECT_TRUE(has(refused, R"("code":"shutting_down")")) << refused;
  EXPECT_TRUE(has(refused, "\r\nRetry-After: 5\r\n")) << refused;
  EXPECT_EQ(status_of(get("/livez")), "200");
  EXPECT_FALSE(server_->finish(0ms));
  request.reply->send({.body = "whole"});
  EXPECT_TRUE(server_->finish(30s));
  const std::string answer = running.read_all();
  EXPECT_TRUE(answer.ends_with("whole")) << answer;
  EXPECT_TRUE(has(answer, "\r\nConnection: close\r\n")) << answer;
}

TEST_F(HttpStream, T35_WhoHangsUpBehindWhatHeSentAheadIsNoticed) {
  HttpOptions options;
  options.limits.write_timeout = std::chrono::milliseconds(400);  // the look is at a quarter of it
  serve(options);
  RawClient hasty = client();
  hasty.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Arrived asked = next();
  // More than is read ahead.
  std::string ahead;
  while (ahead.size() < 3 * HttpLimits::kHeaderBytes) {
    ahead += "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  ASSERT_TRUE(hasty.send(ahead));
  hasty.close();
  EXPECT_TRUE(asked.handler->wait_for_gone());
}

}  // namespace
}  // namespace berth::gateway
