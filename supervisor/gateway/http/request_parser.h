#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::gateway {

// A request's head, as far as the server needs it.
struct RequestHead {
  std::string method;
  std::string path;   // as sent, without the query
  std::string query;  // behind the "?"
  std::string host;
  std::string authorization;
  std::string content_type;
  std::optional<std::string> origin;
  std::optional<std::string> request_id;
  std::string preflight_method;  // Access-Control-Request-Method
  std::string last_event_id;
  bool content_encoded = false;  // Content-Encoding says more than identity
  bool forwarded = false;        // Forwarded, X-Forwarded-* or Via was sent
  bool old_version = false;      // HTTP/1.0
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;
  std::uint64_t content_length = 0;  // where not chunked

  [[nodiscard]] bool has_body() const { return chunked || content_length != 0; }
};

// Parses one request out of bytes. Beast does the work, behind the rules of head_rules.h.
class RequestParser {
 public:
  RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;
  ~RequestParser();

  // `bytes` is a whole head with its empty line, as HeadScan found it. Once. Errors:
  // kInvalidArgument.
  Result<RequestHead> head(std::string_view bytes);

  // Behind head(): the body from here on, of at most `most` bytes.
  void expect_body(std::uint64_t most);
  // Takes as much of `bytes` as belongs to the body and can be read yet; returns how much. Errors:
  // kInvalidArgument (chunks), kBodyTooLarge.
  Result<std::size_t> body(std::string_view bytes);
  [[nodiscard]] bool body_done() const;
  // The bytes of memory that the body takes so far: of an announced one what came of it, of another
  // its buffer, which never has more than `most`.
  [[nodiscard]] std::size_t body_memory() const;
  std::string take_body();
  void drop_body();  // what came so far, where nobody wants it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::gateway
