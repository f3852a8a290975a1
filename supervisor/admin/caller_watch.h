#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "common/result.h"
#include "supervisor/core/caller.h"

namespace berth::admin {

// Knows for whom something goes on without an end (events, the state, a log), and tells it where a
// caller is not any more who he was when he asked for it. Any thread; may go before its tokens.
class CallerWatch {
 public:
  // Whether a caller still is who he was. Errors: kUnauthenticated.
  using Ask = std::function<Status(const core::Caller&)>;
  // Once at most, and under no lock. It may still come while its token goes.
  using OnRefused = std::function<void(const Error&)>;

  // Empty: everybody always is.
  explicit CallerWatch(Ask ask = {}) : ask_(std::move(ask)) {}
  CallerWatch(const CallerWatch&) = delete;
  CallerWatch& operator=(const CallerWatch&) = delete;

  // Whom one token stands for is asked about until it goes.
  class Token;
  // Tells at once, from within, of one who already is not.
  std::unique_ptr<Token> watch(core::Caller caller, OnRefused on_refused);

  // Something is other about callers now: asks about each.
  void changed();

 private:
  struct Watched {
    core::Caller caller;
    OnRefused on_refused;
  };
  struct Shared {
    std::mutex mutex;
    std::uint64_t next = 1;
    std::map<std::uint64_t, Watched> watched;
  };

  const Ask ask_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

class CallerWatch::Token {
 public:
  Token(std::shared_ptr<Shared> shared, std::uint64_t id) : shared_(std::move(shared)), id_(id) {}
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  ~Token();

  // Nobody is asked about any more. Returns whether it was until now, and was not told.
  bool forget();

 private:
  const std::shared_ptr<Shared> shared_;
  const std::uint64_t id_;
};

}  // namespace berth::admin
