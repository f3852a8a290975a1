#include "supervisor/cli/client/connect_problem.h"

namespace berth::cli {

std::string connect_problem(std::string_view grpc_text, bool tls) {
  const auto says = [grpc_text](std::string_view part) {
    return grpc_text.find(part) != std::string_view::npos;
  };
  if (says("Connection refused")) return "nobody listens there (connection refused)";
  if (says("DNS resolution failed")) return "the name of the machine is not known";
  if (says("http1.x server") || says("Failed parsing HTTP/2")) {
    return "what answers there is no gRPC: is it the HTTP port? The command line takes an address "
           "of `server.grpc`";
  }
  if (says("certificate verify failed")) {
    return "its certificate is not signed by the CA of --tls-ca (BERTH_TLS_CA)";
  }
  if (says("Peer name") || says("Hostname")) {
    return "its certificate is for another name than the one of the endpoint";
  }
  if (says("wrong version number")) {
    return "what answers there has no TLS: it is no berthd with `server.tls_cert`, or not its gRPC "
           "port; else leave --tls-ca (BERTH_TLS_CA) out";
  }
  if (says("Socket closed") && !tls) {
    return "what listens there closes the connection: a berthd with `server.tls_cert` wants TLS, "
           "so name its CA with --tls-ca (BERTH_TLS_CA)";
  }
  std::string text = "nobody answers there as berthd does";
  if (tls) text += ", with TLS and a certificate for this name that --tls-ca (BERTH_TLS_CA) signs";
  if (!grpc_text.empty()) text.append(" (").append(grpc_text).append(")");
  return text;
}

}  // namespace berth::cli
