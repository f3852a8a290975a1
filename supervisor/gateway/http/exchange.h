#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "supervisor/core/caller.h"

namespace berth::gateway {

// HTTP without a library's types: what a route's handler sees.

struct HttpHeader {
  std::string name;
  std::string value;
};

// One request, after all checks that come before its handler.
struct HttpRequest {
  std::string method;                  // "GET", "POST"
  std::string path;                    // as sent, without the query
  std::vector<std::string> arguments;  // what the {} of its route matched, percent-decoded UTF-8
  std::string query;                   // behind the "?", as sent
  std::string body;
  core::Caller caller;
  std::string id;  // of the request: X-Request-Id, where that is valid, else one that was made
  std::string last_event_id{};  // the header Last-Event-ID
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<HttpHeader> headers{};
  std::string body{};
};

// A request that was refused before a handler saw it.
struct HttpRefusal {
  const std::string& id;
  const core::Caller* caller;  // null: refused before he was known
  const Error& why;
};

// The answer to one request. Thread-safe; nothing blocks. Exactly one of send() and begin(), once;
// behind begin() any number of write(), then exactly one of end() and break_off(). After
// Handler::on_gone() every call does nothing. X-Request-Id is added to what is sent.
class Reply {
 public:
  // Bytes that may wait for a slow client before write() says that there is no room.
  static constexpr std::size_t kRoom = 32U << 10;

  Reply() = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  virtual ~Reply() = default;

  // The whole answer.
  virtual void send(HttpResponse response) = 0;
  // The head of a stream, whose body is ignored; goes out at once.
  virtual void begin(HttpResponse head) = 0;
  // The next piece of the stream, which is taken in any case. Returns whether there is room for
  // more; false pauses until Handler::on_room().
  virtual bool write(std::string piece) = 0;
  // The stream is complete.
  virtual void end() = 0;
  // The stream is not complete, and the client has to see it: the connection is closed without the
  // last chunk.
  virtual void break_off() = 0;
};

// What works on one request. Calls come on the server's thread, after the route's start has
// returned, and never overlap; where the server is gone before a start on the pool has returned,
// on_gone() comes on the pool.
class Handler {
 public:
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  virtual ~Handler() = default;

  virtual void on_room() {}
  // The client is gone; the last call.
  virtual void on_gone() = 0;
};

// Who may use a route.
enum class Access : std::uint8_t { kOpen, kClient, kAdmin };

struct Route {
  std::string method;  // GET (which also serves HEAD), POST or DELETE
  // "/v1/models/{}": {} is one segment that is not empty, "{...}" at the end is the whole rest.
  std::string pattern;
  Access access = Access::kClient;
  // Starts to work on a request, on the server's thread, or on the pool where the body is large.
  // Must not block. The handler lives until the answer is complete or the client gone; null where
  // there is nothing to tell it.
  std::function<std::shared_ptr<Handler>(HttpRequest request, std::shared_ptr<Reply> reply)> start;
  // Whether it counts for the limits of its caller's key. Open routes, which know no caller, never
  // do.
  bool limited = true;
  // Whether its answer comes in a moment and no handler works on it: it is also for a client that
  // has ended its sending, which elsewhere counts as gone.
  bool brief = false;
};

}  // namespace berth::gateway
