#include "supervisor/gateway/grpc/network_credentials.h"

#include <fstream>
#include <iterator>

namespace berth::gateway {
namespace {

Result<std::string> read_pem(const std::string& path, const std::string& setting) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file && !text.empty()) return text;
  return fail(Reason::kInvalidArgument,
              "server." + setting + ": " + path + " cannot be read, or is empty.");
}

}  // namespace

Result<std::shared_ptr<grpc::ServerCredentials>> network_credentials(const std::string& tls_cert,
                                                                     const std::string& tls_key) {
  if (tls_cert.empty()) return grpc::InsecureServerCredentials();
  const Result<std::string> certificate = read_pem(tls_cert, "tls_cert");
  if (!certificate) return fail(certificate.error());
  const Result<std::string> key = read_pem(tls_key, "tls_key");
  if (!key) return fail(key.error());
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back({*key, *certificate});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace berth::gateway
