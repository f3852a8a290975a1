#include "supervisor/gateway/http/head_rules.h"

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <string>

#include "supervisor/gateway/http/http_limits.h"

namespace berth::gateway {
namespace {

constexpr std::size_t kMethodBytes = 16;
constexpr std::size_t kLengthDigits = 18;  // never overflows 64 bits

bool is_token_character(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool same(std::string_view a, std::string_view b) {
  return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

tl::unexpected<Error> bad(std::string what) {
  return fail(Reason::kInvalidArgument, "This is not a valid HTTP/1.1 request: " + std::move(what));
}

Status check_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos) {
    return bad("its first line is not \"METHOD TARGET HTTP/1.1\".");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(method) || method.size() > kMethodBytes) return bad("its method is no word.");
  if (target.empty() || !std::ranges::all_of(target, [](char c) { return c > ' ' && c < 0x7F; })) {
    return bad("its target has characters that must be percent-encoded.");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return bad("this server speaks HTTP/1.1 and HTTP/1.0.");
  }
  return {};
}

// Fields that decide who asks for what, or where the request ends: two of them could be read in two
// ways.
constexpr std::array<std::string_view, 9> kSingle = {
    "host",          "content-length", "transfer-encoding",
    "authorization", "content-type",   "origin",
    "x-request-id",  "expect",         "last-event-id"};

class FieldRules {
 public:
  Status take(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') return bad("a header line is folded.");
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bad("a header line has no colon.");
    const std::string_view name = line.substr(0, colon);
    if (!is_token(name)) return bad("a header's name is no word directly before its colon.");
    const auto* single =
        std::ranges::find_if(kSingle, [name](std::string_view known) { return same(name, known); });
    if (single == kSingle.end()) return {};
    bool& seen = seen_.at(static_cast<std::size_t>(single - kSingle.begin()));
    if (seen) return bad("the header " + std::string(*single) + " comes twice.");
    seen = true;
    return check_value(*single, trimmed(line.substr(colon + 1)));
  }

  [[nodiscard]] Status end(bool old_version) const {
    if (!seen_[kHost]) return bad("it has no Host header.");
    if (seen_[kLength] && seen_[kEncoding]) {
      return bad("it has both Content-Length and Transfer-Encoding.");
    }
    if (seen_[kEncoding] && old_version) return bad("HTTP/1.0 has no Transfer-Encoding.");
    return {};
  }

 private:
  static constexpr std::size_t kHost = 0;
  static constexpr std::size_t kLength = 1;
  static constexpr std::size_t kEncoding = 2;

  static Status check_value(std::string_view name, std::string_view value) {
    if (name == kSingle[kLength] && (!is_digits(value) || value.size() > kLengthDigits)) {
      return bad("its Content-Length is no number of bytes.");
    }
    if (name == kSingle[kEncoding] && !same(value, "chunked")) {
      return bad("the only Transfer-Encoding that is taken is chunked.");
    }
    if (name == "expect" && !same(value, "100-continue")) {
      return bad("the only Expect that is known is 100-continue.");
    }
    return {};
  }

  std::array<bool, kSingle.size()> seen_{};
};

}  // namespace

Result<std::size_t> HeadScan::scan(std::string_view bytes) {
  const std::size_t end = std::min(bytes.size(), HttpLimits::kHeaderBytes);
  for (; seen_ < end; ++seen_) {
    const auto c = static_cast<unsigned char>(bytes[seen_]);
    const bool after_cr = seen_ > 0 && bytes[seen_ - 1] == '\r';
    if (after_cr != (c == '\n')) return bad("a line does not end in CRLF.");
    if (c == '\n') {
      const bool empty = seen_ - line_ == 1;
      if (empty && line_ == 0) return bad("it begins with an empty line.");
      if (empty) return ++seen_;
      // The first line is the request's; the rest are fields.
      if (line_ != 0 && ++fields_ > HttpLimits::kHeaderFields) {
        return fail(
            Reason::kHeadersTooLarge,
            "The header has more than " + std::to_string(HttpLimits::kHeaderFields) + " fields.");
      }
      line_ = seen_ + 1;
      continue;
    }
    if ((c < ' ' && c != '\r' && c != '\t') || c == 0x7F) {
      return bad("its header has a control character.");
    }
  }
  if (bytes.size() >= HttpLimits::kHeaderBytes) {
    return fail(Reason::kHeadersTooLarge, "The header is larger than 16 KiB.");
  }
  return 0;
}

Status check_head(std::string_view head) {
  FieldRules rules;
  bool first = true;
  bool old_version = false;
  while (true) {
    const std::size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return bad("it has no end.");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (first) {
      if (Status checked = check_request_line(line); !checked) return checked;
      old_version = line.ends_with("HTTP/1.0");
      first = false;
    } else if (line.empty()) {
      return rules.end(old_version);
    } else if (Status checked = rules.take(line); !checked) {
      return checked;
    }
  }
}

}  // namespace berth::gateway
