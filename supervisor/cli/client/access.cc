#include "supervisor/cli/client/access.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/errno_text.h"
#include "common/fd.h"
#include "common/text.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMaxFileBytes = 1U << 20;
constexpr std::size_t kMaxKeyBytes = 512;
constexpr std::size_t kShownBytes = 256;

Result<std::string> read_file(std::string_view named_by, const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  const std::string prefix = std::string(named_by) + ": cannot read " + path + ": ";
  if (!fd) {
    return fail(Reason::kInvalidArgument, prefix + errno_text(errno));
  }
  ReadAll read = read_all(fd.get(), kMaxFileBytes);
  if (!read.error.empty()) return fail(Reason::kInvalidArgument, prefix + read.error);
  return std::move(read.text);
}

// A key must be able to stand in a header.
Result<std::string> checked_key(std::string_view named_by, std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  const bool good = !text.empty() && text.size() <= kMaxKeyBytes &&
                    std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  if (good) return std::string(text);
  return fail(Reason::kInvalidArgument,
              std::string(named_by) + ": expected a key as `berth keys add` prints it");
}

// Whether nobody else is on the way to the host.
bool stays_here(const std::string& host) {
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

}  // namespace

Result<Access> find_access(const CommonOptions& options, const Endpoint& endpoint,
                           const Environment& environment) {
  Access access;
  const bool network = endpoint.socket.empty();
  if (!options.api_key_file.empty()) {
    constexpr std::string_view kOption = "--api-key-file";
    const Result<std::string> text = read_file(kOption, options.api_key_file);
    if (!text) return fail(text.error());
    Result<std::string> key = checked_key(kOption, text->substr(0, text->find('\n')));
    if (!key) return fail(key.error());
    access.api_key = *std::move(key);
  } else if (const auto variable = environment.non_empty("BERTH_API_KEY"); variable && network) {
    Result<std::string> key = checked_key("BERTH_API_KEY", *variable);
    if (!key) return fail(key.error());
    access.api_key = *std::move(key);
  }
  if (!network) return access;
  const bool given = !options.tls_ca.empty();
  const std::string file =
      given ? options.tls_ca : environment.non_empty("BERTH_TLS_CA").value_or(std::string());
  if (file.empty()) {
    if (!access.api_key.empty() && !stays_here(endpoint.host)) {
      environment.err.write("berth: the key goes to " + printable_line(endpoint.text, kShownBytes) +
                            " in the clear: name its certificates with --tls-ca\n");
    }
    return access;
  }
  const std::string_view named_by = given ? "--tls-ca" : "BERTH_TLS_CA";
  Result<std::string> text = read_file(named_by, file);
  if (!text) return fail(text.error());
  if (text->find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return fail(Reason::kInvalidArgument,
                std::string(named_by) + ": " + file + " holds no certificate (PEM)");
  }
  access.tls_ca = *std::move(text);
  return access;
}

}  // namespace berth::cli
