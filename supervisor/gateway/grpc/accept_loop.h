#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace berth::gateway {

// Accepts connections from listening sockets, on a thread of its own that ends with it.
class AcceptLoop {
 public:
  // On that thread, one call at a time.
  using OnAccept = std::function<void(UniqueFd connection)>;

  // The listeners do not block. Errors: kInternal.
  static Result<std::unique_ptr<AcceptLoop>> start(std::vector<UniqueFd> listeners,
                                                   OnAccept on_accept);

  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;
  ~AcceptLoop();

 private:
  AcceptLoop(std::vector<UniqueFd> listeners, OnAccept on_accept)
      : listeners_(std::move(listeners)), on_accept_(std::move(on_accept)) {}

  void run();
  void accept_from(int listener);

  const std::vector<UniqueFd> listeners_;
  const OnAccept on_accept_;
  UniqueFd stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace berth::gateway
