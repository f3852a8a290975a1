#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "common/result.h"

namespace berth::gateway {

// What speaks TLS with these PEM files, or without it where none is named. Errors: kInvalidArgument
// with the file that cannot be read.
Result<std::shared_ptr<grpc::ServerCredentials>> network_credentials(const std::string& tls_cert,
                                                                     const std::string& tls_key);

}  // namespace berth::gateway
