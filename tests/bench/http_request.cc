#include "tests/bench/http_request.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>

namespace berth::bench {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{1} << 20;
constexpr int kSilenceMs = 600'000;  // a busy machine reads a long prompt

tl::unexpected<Error> system_failure(std::string_view step, int code) {
  return fail(Reason::kInternal, std::string(step) + ": " + std::generic_category().message(code));
}

// The number that `text` begins with, at most kMaxAnswer.
std::optional<std::size_t> leading_number(std::string_view text, int base) {
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (parsed.ec != std::errc{} || value > kMaxAnswer) return std::nullopt;
  return value;
}

// Where the answer in `text`, whose body begins at `body`, ends; nothing: not all of it is there.
// Errors: neither Content-Length nor chunks.
Result<std::optional<std::size_t>> answer_end(std::string_view text, std::size_t body) {
  std::string header(text.substr(0, body));
  std::transform(header.begin(), header.end(), header.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kLength = "\r\ncontent-length: ";
  if (const std::size_t at = header.find(kLength); at != std::string::npos) {
    const auto length = leading_number(std::string_view(header).substr(at + kLength.size()), 10);
    if (!length) return fail(Reason::kInternal, "the answer's Content-Length cannot be used");
    if (text.size() < body + *length) return std::optional<std::size_t>();
    return std::optional(body + *length);
  }
  if (header.find("\r\ntransfer-encoding: chunked") == std::string::npos) {
    return fail(Reason::kInternal, "the answer has no length");
  }
  while (text.find("\r\n", body) != std::string_view::npos) {
    const auto length = leading_number(text.substr(body), 16);
    if (!length) return fail(Reason::kInternal, "a chunk of the answer has no length");
    body = text.find("\r\n", body) + 2 + *length + 2;
    if (text.size() < body) break;
    if (*length == 0) return std::optional(body);
  }
  return std::optional<std::size_t>();
}

}  // namespace

Result<HttpConnection> HttpConnection::open(const std::string& host, std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return system_failure("socket", errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return fail(Reason::kInvalidArgument, host + " is not an IPv4 address");
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how sockets take addresses
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_failure("connect to " + host + ":" + std::to_string(port), errno);
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return HttpConnection(std::move(fd), host + ":" + std::to_string(port));
}

Status HttpConnection::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_failure("send", errno);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Status HttpConnection::read_more(std::string& into) {
  pollfd readable{fd_.get(), POLLIN, 0};
  const int ready = ::poll(&readable, 1, kSilenceMs);
  if (ready == 0) return fail(Reason::kDeadline, "the server was silent for 600 s");
  std::array<char, 65'536> buffer;
  const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return system_failure("recv", errno);
  if (got == 0) return fail(Reason::kInternal, "the server closed the connection");
  if (into.size() + static_cast<std::size_t>(got) > kMaxAnswer) {
    return fail(Reason::kInternal, "the answer is larger than 1 MiB");
  }
  into.append(buffer.data(), static_cast<std::size_t>(got));
  return {};
}

Result<std::string> HttpConnection::request(std::string_view method, std::string_view path,
                                            std::string_view json_body) {
  std::string text;
  text.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: ").append(host_);
  text.append("\r\nContent-Type: application/json\r\nContent-Length: ");
  text.append(std::to_string(json_body.size())).append("\r\n\r\n").append(json_body);
  if (Status sent = send_all(text); !sent) return fail(sent.error());

  std::string answer;
  std::size_t header_end = std::string::npos;
  while ((header_end = answer.find("\r\n\r\n")) == std::string::npos) {
    if (Status more = read_more(answer); !more) return fail(more.error());
  }
  const std::size_t body = header_end + 4;
  Result<std::optional<std::size_t>> end = answer_end(answer, body);
  while (end && !*end) {
    if (Status more = read_more(answer); !more) return fail(more.error());
    end = answer_end(answer, body);
  }
  if (!end) return fail(end.error());
  if (answer.compare(0, 12, "HTTP/1.1 200") != 0) {
    return fail(Reason::kInternal, answer.substr(0, **end));
  }
  return answer.substr(body, **end - body);
}

}  // namespace berth::bench
