#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"

namespace berth::bench {

// One HTTP/1.1 connection to a server on this machine, for the requests that are
// measured and no others: blocking, no redirects, no TLS, at most 1 MiB of answer. One thread.
class HttpConnection {
 public:
  // `host` is an IPv4 address. Errors: kInternal with the step and errno.
  static Result<HttpConnection> open(const std::string& host, std::uint16_t port);

  // Sends one request and reads the whole answer, which must have status 200 and say its length.
  // Returns the body, with its chunk lines if it has some. Errors: kInternal (connection, status),
  // kDeadline after 600 s of silence.
  Result<std::string> request(std::string_view method, std::string_view path,
                              std::string_view json_body);

 private:
  explicit HttpConnection(UniqueFd fd, std::string host)
      : fd_(std::move(fd)), host_(std::move(host)) {}
  Status send_all(std::string_view bytes);
  Status read_more(std::string& into);

  UniqueFd fd_;
  std::string host_;
};

}  // namespace berth::bench
