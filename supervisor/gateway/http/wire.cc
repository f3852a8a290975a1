#include "supervisor/gateway/http/wire.h"

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <ctime>

namespace berth::gateway {
namespace {

bool frames(std::string_view name) {
  constexpr std::array<std::string_view, 6> kOurs = {
      "connection", "content-length", "date", "keep-alive", "transfer-encoding", "x-request-id"};
  return std::ranges::any_of(kOurs, [name](std::string_view ours) {
    return boost::beast::iequals({ours.data(), ours.size()}, {name.data(), name.size()});
  });
}

bool is_harmless(const HttpHeader& header) {
  const bool word = !header.name.empty() && std::ranges::all_of(header.name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
  return word && std::ranges::none_of(header.value, [](char c) {
           return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7F;
         });
}

void put(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void put_all(std::string& out, const std::vector<HttpHeader>& headers) {
  for (const HttpHeader& header : headers) {
    if (!frames(header.name) && is_harmless(header)) put(out, header.name, header.value);
  }
}

}  // namespace

std::string response_head(const HttpResponse& response, const ResponseFrame& frame) {
  std::string out;
  out.reserve(512);
  const auto phrase =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(response.status));
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  out.append(phrase.data(), phrase.size()).append("\r\n");
  const bool bodiless = response.status == 204 || response.status == 304;
  if (!response.content_type.empty() && !bodiless) {
    put_all(out, {{"Content-Type", response.content_type}});
  }
  if (frame.framing == Framing::kChunked) {
    put(out, "Transfer-Encoding", "chunked");
  } else if (frame.framing == Framing::kLength && !bodiless) {
    put(out, "Content-Length", std::to_string(response.body.size()));
  }
  put(out, "X-Request-Id", frame.request_id);
  put(out, "Date", frame.date);
  if (!frame.keep_alive) put(out, "Connection", "close");
  put_all(out, response.headers);
  if (frame.extra != nullptr) put_all(out, *frame.extra);
  return out += "\r\n";
}

void append_chunk(std::string& out, std::string_view bytes) {
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  out.append(size.data(), end).append("\r\n").append(bytes).append("\r\n");
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                     "Thu", "Fri", "Sat"};
  std::array<char, 32> text{};
  // The locale is "C" here, as nobody sets another.
  const std::size_t size =
      std::strftime(text.data(), text.size(), ", %d %b %Y %H:%M:%S GMT", &parts);
  return std::string(kDays.at(static_cast<std::size_t>(parts.tm_wday))).append(text.data(), size);
}

}  // namespace berth::gateway
