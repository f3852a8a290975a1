#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/gateway/http/exchange.h"
#include "supervisor/gateway/http/mailbox.h"

namespace berth::gateway {

// What a handler has answered and the connection has not sent yet. Thread-safe on the handler's
// side; take() and sent() belong to the connection. Pieces that come while the connection writes
// are gathered into its next write.
class ReplyQueue : public std::enable_shared_from_this<ReplyQueue> {
 public:
  // `wake` runs on the server's thread when there is something to take.
  ReplyQueue(std::shared_ptr<Mailbox> mailbox, std::function<void()> wake)
      : mailbox_(std::move(mailbox)), wake_(std::move(wake)) {}

  // What the handler holds. When it lets go of it before the answer is complete, that is a defect,
  // which the client sees as 500 or as a stream that breaks off.
  std::shared_ptr<Reply> handle();

  void send(HttpResponse response);
  void begin(HttpResponse head);
  bool write(std::string piece);
  void end();
  void break_off();

  struct News {
    std::optional<HttpResponse> head;
    bool whole = false;  // the head has the whole body
    std::string body;    // of a stream
    bool ended = false;
    bool broken = false;
  };
  News take();
  // So many bytes of the stream's body have left. Returns whether the handler waits for room, and
  // has it now.
  bool sent(std::size_t bytes);
  // The client is gone; from now on nothing is taken. Returns whether the answer was incomplete.
  bool close();
  // Whether it was closed before the answer was complete.
  [[nodiscard]] bool gone() const;

 private:
  class Handle;

  enum class Phase : std::uint8_t { kFresh, kStream, kComplete };

  void tell(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<Mailbox> mailbox_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  Phase phase_ = Phase::kFresh;
  bool gone_ = false;
  bool told_ = false;        // wake_ is on its way
  bool wants_room_ = false;  // write() has said that there is none
  std::size_t waiting_ = 0;  // bytes of the stream's body that have not left
  News news_;
};

}  // namespace berth::gateway
