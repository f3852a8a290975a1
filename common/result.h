#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "common/reason.h"

namespace berth {

// How a worker process failed; a part of an Error where that is the cause.
struct FailureEvidence {
  std::string id;             // of the record, a UUIDv7
  std::string failure_class;  // permanent | resource | … | unclassified
  std::string reason;         // sanitised, at most 512 bytes, no path
  std::int64_t since_unix_ms = 0;
  std::optional<int> exit_code;  // where the process exited
  std::string signal;            // e.g. "SIGSEGV", where a signal ended it
  std::string instance_id;
  std::vector<std::string> log_tail;  // sanitised; for admins only
  std::vector<std::string> command;   // for admins only
};

// What holds the thing that was asked for.
struct HolderInfo {
  std::string model;
  std::string state;  // of its instance: "loading"
  std::string job{};  // the idle work that holds it, by kind: "context_probe"; empty: a client's
  std::int64_t since_unix_ms = 0;  // of the job, else of the state
};

// A model that would fit where the one that was asked for does not.
struct WouldFit {
  std::uint32_t context = 0;  // tokens
  std::uint32_t sequences = 0;

  bool operator==(const WouldFit&) const = default;
};

// Memory that there is not enough of, bytes.
struct MemoryShortage {
  std::string domain;  // "host", or a device's id
  std::uint64_t needed_bytes = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::uint64_t deficit_bytes = 0;
  std::optional<WouldFit> would_fit{};
};

// Typed extras of an Error; all optional.
struct ErrorExtras {
  std::string param;  // field of the request that was wrong
  std::optional<double> retry_after_seconds;
  std::vector<std::string> suggestions;
  std::optional<std::uint64_t> needed;
  std::optional<std::uint64_t> limit;
  std::optional<FailureEvidence> failure;
  std::optional<HolderInfo> holder;
  std::optional<MemoryShortage> memory{};
  // The message holds words of the client or of a program, which no log and no event may have.
  bool quotes = false;
};

// An error as a value. The message is one or two sentences for a person: what was wrong, where,
// and what to do. Copyable; errors are rare, so the extras live on the heap.
struct Error {
  Reason reason = Reason::kInternal;
  std::string message;
  std::shared_ptr<const ErrorExtras> extras;  // may be null

  Error() = default;
  Error(Reason why, std::string text) : reason(why), message(std::move(text)) {}
  Error(Reason why, std::string text, ErrorExtras more)
      : reason(why),
        message(std::move(text)),
        extras(std::make_shared<const ErrorExtras>(std::move(more))) {}
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

// return fail(Reason::kNotFound, "…");
inline tl::unexpected<Error> fail(Reason reason, std::string message) {
  return tl::unexpected<Error>(Error(reason, std::move(message)));
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
// kInvalidArgument about one field of a request.
inline tl::unexpected<Error> invalid_argument(std::string_view param, std::string message) {
  ErrorExtras extras;
  extras.param = std::string(param);
  return fail(Error(Reason::kInvalidArgument, std::move(message), std::move(extras)));
}

}  // namespace berth
