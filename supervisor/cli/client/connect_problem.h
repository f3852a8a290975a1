#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

// Why no connection came about, for a person: what gRPC says of it, as far as that tells. `tls`:
// --tls-ca was given. The texts are those of gRPC 1.51; one that is not known is shown as it is.
std::string connect_problem(std::string_view grpc_text, bool tls);

}  // namespace berth::cli
