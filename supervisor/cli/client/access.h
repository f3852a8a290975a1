#pragma once

#include <string>

#include "common/result.h"
#include "supervisor/cli/endpoint.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/options.h"

namespace berth::cli {

// What is shown to the daemon, and wanted from it, over the network.
struct Access {
  std::string api_key;  // empty: none is sent
  std::string tls_ca;   // certificates as PEM; empty: no TLS
};

// From the options, else the environment (BERTH_API_KEY, BERTH_TLS_CA). A Unix socket needs
// neither: there the kernel says who comes, and only a key that was named with --api-key-file is
// sent. Says so on `err` where a key goes to another machine without TLS. Reads files. Errors:
// kInvalidArgument, with the option or variable and what is wrong.
Result<Access> find_access(const CommonOptions& options, const Endpoint& endpoint,
                           const Environment& environment);

}  // namespace berth::cli
