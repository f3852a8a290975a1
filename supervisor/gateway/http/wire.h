#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway {

// How answers look on the wire.

enum class Framing : std::uint8_t {
  kLength,   // Content-Length
  kChunked,  // a stream
  kClose,    // a stream to an HTTP/1.0 client: the connection's end is its end
};

struct ResponseFrame {
  Framing framing = Framing::kLength;
  bool keep_alive = true;
  std::string_view request_id;
  std::string_view date;                           // as HTTP writes it
  const std::vector<HttpHeader>* extra = nullptr;  // beside the response's own
};

// The head with its empty line. Headers that would break it (a line end in a value, a name that is
// no word) are left out, as are those that frame the message.
std::string response_head(const HttpResponse& response, const ResponseFrame& frame);

// One chunk; `bytes` is not empty.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// "Sun, 06 Nov 1994 08:49:37 GMT", now.
std::string http_date();

}  // namespace berth::gateway
