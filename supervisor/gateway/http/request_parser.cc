#include "supervisor/gateway/http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "supervisor/gateway/http/head_rules.h"
#include "supervisor/gateway/http/http_limits.h"

namespace berth::gateway {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kChunkExtensionBytes = 256;
// How many times what came a body may have of the room that its head asks for.
constexpr std::uint64_t kRoomAhead = 8;

// A body as a text for Beast, whose own takes the room for all that was announced before one byte
// has come. Where nothing was announced it doubles, up to the most that it may have.
struct TextBody {
  struct Value {
    std::string text;
    std::uint64_t most = 0;
  };
  using value_type = Value;

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(http::header<isRequest, Fields>& /*head*/, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>& length, error_code& failed) {
      announced_ = length;
      failed = {};
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& failed) {
      std::string& text = body_.text;
      const std::size_t size = text.size() + beast::buffer_bytes(buffers);
      if (size > text.capacity()) {
        const std::uint64_t room =
            announced_ ? std::min(*announced_, kRoomAhead * size) : std::min(body_.most, 2 * size);
        if (room >= size) {
          // What a text has already it would at least double.
          std::string larger;
          larger.reserve(room);
          larger += text;
          text.swap(larger);
        }
      }
      for (const boost::asio::const_buffer piece : beast::buffers_range_ref(buffers)) {
        text.append(static_cast<const char*>(piece.data()), piece.size());
      }
      failed = {};
      return beast::buffer_bytes(buffers);
    }
    void finish(error_code& failed) { failed = {}; }

   private:
    value_type& body_;
    boost::optional<std::uint64_t> announced_;
  };
};

std::string text(beast::string_view from) {
  return {from.data(), from.size()};
}

// "http://HOST/path", which HTTP allows beside "/path": the path, where it names the same host.
Status take_target(std::string_view target, RequestHead& head) {
  if (!target.starts_with('/')) {
    const std::size_t scheme = target.starts_with("https://") ? 8 : 7;
    if (!target.starts_with("https://") && !target.starts_with("http://")) {
      return fail(Reason::kInvalidArgument, "The request's target must be a path.");
    }
    target.remove_prefix(scheme);
    const std::size_t slash = target.find_first_of("/?");
    const std::string_view authority = target.substr(0, slash);
    if (!beast::iequals({authority.data(), authority.size()}, head.host)) {
      return fail(Reason::kInvalidArgument,
                  "The request's target names another host than its Host header.");
    }
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
    if (target.starts_with('?')) {
      return fail(Reason::kInvalidArgument, "The request's target has no path.");
    }
  }
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  head.path = target.substr(0, mark);
  if (mark != std::string_view::npos) head.query = target.substr(mark + 1);
  return {};
}

// Whether a line of the framing of chunks ends in a line feed alone. Beast waits for its CRLF.
bool has_bare_line_feed(std::string_view framing) {
  for (std::size_t at = framing.find('\n'); at != std::string_view::npos;
       at = framing.find('\n', at + 1)) {
    if (at == 0 || framing[at - 1] != '\r') return true;
  }
  return false;
}

bool tells_of_a_proxy(beast::string_view name) {
  constexpr beast::string_view kPrefix = "x-forwarded-";
  return beast::iequals(name, "forwarded") || beast::iequals(name, "via") ||
         (name.size() > kPrefix.size() && beast::iequals(name.substr(0, kPrefix.size()), kPrefix));
}

}  // namespace

struct RequestParser::Impl {
  Impl() {
    parser.header_limit(HttpLimits::kHeaderBytes);
    parser.body_limit(boost::none);
    parser.on_chunk_header(check_chunk);
  }

  http::request_parser<TextBody> parser;
  // What Beast leaves to its callers; kept here as the parser holds a reference.
  std::function<void(std::uint64_t, beast::string_view, error_code&)> check_chunk =
      [](std::uint64_t, beast::string_view extension, error_code& failed) {
        const bool plain = std::ranges::all_of(extension, [](char c) {
          return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != 0x7F);
        });
        if (!plain || extension.size() > kChunkExtensionBytes) {
          failed = http::error::bad_chunk_extension;
        }
      };
};

RequestParser::RequestParser() : impl_(std::make_unique<Impl>()) {}
RequestParser::~RequestParser() = default;

Result<RequestHead> RequestParser::head(std::string_view bytes) {
  if (Status checked = check_head(bytes); !checked) return fail(checked.error());
  error_code failed;
  impl_->parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), failed);
  if (failed || !impl_->parser.is_header_done()) {
    return fail(Reason::kInvalidArgument,
                "This is not a valid HTTP/1.1 request: " + failed.message() + ".");
  }
  const auto& message = impl_->parser.get();
  RequestHead head;
  head.method = text(message.method_string());
  head.host = text(message[http::field::host]);
  head.authorization = text(message[http::field::authorization]);
  head.content_type = text(message[http::field::content_type]);
  head.last_event_id = text(message["Last-Event-ID"]);
  head.preflight_method = text(message[http::field::access_control_request_method]);
  if (const auto found = message.find(http::field::origin); found != message.end()) {
    head.origin = text(found->value());
  }
  if (const auto found = message.find("X-Request-Id"); found != message.end()) {
    head.request_id = text(found->value());
  }
  head.forwarded = std::ranges::any_of(
      message, [](const auto& field) { return tells_of_a_proxy(field.name_string()); });
  head.content_encoded = std::ranges::any_of(message, [](const auto& field) {
    return field.name() == http::field::content_encoding && !field.value().empty() &&
           !beast::iequals(field.value(), "identity");
  });
  head.old_version = message.version() < 11;
  head.keep_alive = impl_->parser.keep_alive();
  head.expects_continue = !message[http::field::expect].empty();
  head.chunked = impl_->parser.chunked();
  if (const auto length = impl_->parser.content_length()) head.content_length = *length;
  const beast::string_view target = message.target();
  if (Status taken = take_target({target.data(), target.size()}, head); !taken) {
    return fail(taken.error());
  }
  return head;
}

void RequestParser::expect_body(std::uint64_t most) {
  impl_->parser.body_limit(most);
  impl_->parser.get().body().most = most;
  impl_->parser.eager(true);
}

Result<std::size_t> RequestParser::body(std::string_view bytes) {
  if (impl_->parser.is_done()) return 0;
  error_code failed;
  const std::size_t taken =
      impl_->parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), failed);
  if (failed == http::error::need_more) failed = {};
  if (failed == http::error::body_limit || failed == http::error::buffer_overflow) {
    return fail(Reason::kBodyTooLarge, "The body is larger than server.max_body allows.");
  }
  if (failed) {
    return fail(Reason::kInvalidArgument,
                "The chunks of the body cannot be read: " + failed.message() + ".");
  }
  // What is left of an eager parser's bytes is framing, never of the body itself.
  const bool unfinished = !impl_->parser.is_done();
  if (unfinished && has_bare_line_feed(bytes.substr(taken))) {
    return fail(Reason::kInvalidArgument,
                "The chunks of the body cannot be read: a line does not end in CRLF.");
  }
  return taken;
}

bool RequestParser::body_done() const {
  return impl_->parser.is_done();
}

std::size_t RequestParser::body_memory() const {
  const std::string& text = impl_->parser.get().body().text;
  return impl_->parser.chunked() ? text.capacity() : text.size();
}

std::string RequestParser::take_body() {
  return std::move(impl_->parser.get().body().text);
}

void RequestParser::drop_body() {
  impl_->parser.get().body().text.clear();
}

}  // namespace berth::gateway
