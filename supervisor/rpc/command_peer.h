#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace berth::rpc {

// Who answers at the address of a program.
struct CommandListener {
  enum class Who : std::uint8_t { kNobody, kChild, kOther };
  Who who = Who::kNobody;
  std::string problem;  // of kOther: "port 1234 is held by pid 12 (nginx)"
};

struct CommandRequest {
  std::string path;
  std::string body;     // JSON of a POST; empty: GET
  Duration deadline{};  // zero: none, it ends with its timer
};
struct CommandAnswer {
  unsigned int status = 0;
  std::string body;  // bounded by whoever read it
};

// A client's request, with an answer that is read as it comes.
struct CommandPost {
  std::string path;
  std::vector<std::string> body;  // JSON, sent one after the other
};
// Not trusted, nor checked.
struct CommandHead {
  unsigned int status = 0;
  std::string content_type;
  std::string content_encoding;
  std::string retry_after;
};

// Gets one answer, on the core strand; calls never overlap and never come from within
// CommandPeer::post(). Dropping the stream from within one of them is allowed.
class CommandStreamSink {
 public:
  CommandStreamSink() = default;
  CommandStreamSink(const CommandStreamSink&) = delete;
  CommandStreamSink& operator=(const CommandStreamSink&) = delete;
  virtual ~CommandStreamSink() = default;

  virtual void on_head(CommandHead head) = 0;
  // Returns whether there is room for one more; false pauses it until CommandStream::resume().
  virtual bool on_piece(std::string piece) = 0;
  // Last call. Errors: kWorkerDied (nobody listens, a stranger does, the connection broke),
  // kInternal (what came is no HTTP).
  virtual void on_end(Status status) = 0;
};

// An answer that is being read. Destroying it closes the connection at once, and nothing is told
// any more. Core strand only.
class CommandStream {
 public:
  CommandStream() = default;
  CommandStream(const CommandStream&) = delete;
  CommandStream& operator=(const CommandStream&) = delete;
  virtual ~CommandStream() = default;

  virtual void resume() = 0;
};

// The program at the other end; the seam to the network. Core strand only. Each call answers once
// on the core strand, never from within the call, unless its timer is dropped first.
class CommandPeer {
 public:
  CommandPeer() = default;
  CommandPeer(const CommandPeer&) = delete;
  CommandPeer& operator=(const CommandPeer&) = delete;
  virtual ~CommandPeer() = default;

  // Looks who listens, without connecting (L27).
  virtual Timer look(std::function<void(CommandListener)> done) = 0;
  // One HTTP request with the instance's own key.
  virtual Timer call(const CommandRequest& request,
                     std::function<void(Result<CommandAnswer>)> done) = 0;
  // The same on a connection that is looked at once it is made: nothing is sent before it is known
  // that the program's own processes answer it. `sink` outlives the stream.
  virtual std::unique_ptr<CommandStream> post(CommandPost post, CommandStreamSink& sink) = 0;
};

}  // namespace berth::rpc
