#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/process/http_call.h"

namespace berth::process {

// One POST of JSON to a program, whose answer is read as it comes.
struct HttpStreamRequest {
  std::string path;
  std::vector<std::string> body;  // sent one after the other
  std::string key{};              // sent as "Authorization: Bearer KEY"; empty: none
  Duration deadline{};            // for all of it, also while it is paused; zero: none
};

// The head of an answer: what of it concerns others. Not trusted, and not checked but for its size
// (64 KiB of header).
struct HttpStreamHead {
  unsigned int status = 0;  // 200 to 999
  std::string content_type;
  std::string content_encoding;
  std::string retry_after;
};

// Gets one answer, on the core strand; calls never overlap and never come from within
// http_stream(). Destroying the stream from within one of them is allowed.
class HttpStreamSink {
 public:
  HttpStreamSink() = default;
  HttpStreamSink(const HttpStreamSink&) = delete;
  HttpStreamSink& operator=(const HttpStreamSink&) = delete;
  virtual ~HttpStreamSink() = default;

  virtual void on_head(HttpStreamHead head) = 0;
  // Never empty, at most 128 KiB. Returns whether there is room for one more; false: nothing more
  // is read until HttpStream::resume(), so that the program has to wait.
  virtual bool on_piece(std::string piece) = 0;
  // Last call. Success: the answer is complete, as far as its framing can tell: one that only the
  // end of the connection ends may lack a part. Errors: kWorkerDied (nobody listens, the connection
  // broke, the answer broke off), kDeadline, kInternal (what came is no HTTP).
  virtual void on_end(Status status) = 0;
};

// An answer that is being read. Destroying it closes the connection at once, and nothing is told
// any more. Core strand only.
class HttpStream {
 public:
  HttpStream() = default;
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;
  virtual ~HttpStream() = default;

  // The sink has room again.
  virtual void resume() = 0;
};

// Asked once for each connection, when it is made and before anything is sent over it: whether it
// is answered by whom it is meant for. Answers on the core strand, never from within the call,
// unless its timer is dropped first.
using CheckConnection = std::function<Timer(std::function<void(Status)> done)>;

// Makes one HTTP/1.1 request on a connection of its own, which it closes afterwards: a connection
// over the loopback device costs less than 0.1 ms, and one that is kept may be closed by the
// program just as the next request is sent, which then may have been worked on or not. An error of
// `check` ends it as it is. The sink outlives the stream. Core strand only, which runs `io`.
std::unique_ptr<HttpStream> http_stream(boost::asio::io_context& io, const HttpAddress& address,
                                        HttpStreamRequest request, CheckConnection check,
                                        HttpStreamSink& sink);

}  // namespace berth::process
