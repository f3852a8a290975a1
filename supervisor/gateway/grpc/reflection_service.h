#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "supervisor/rpc/call_access.h"

namespace berth::gateway {

// grpc.reflection.v1alpha: what the server offers, and the files that describe it, to whoever may
// call. gRPC 1.51's own holds a thread of the program for each open stream, whoever opened it.
class ReflectionService : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  // `services`: full names of the others that are offered. Nothing but their files and what these
  // import is told.
  ReflectionService(rpc::CallAccess access, std::vector<std::string> services);

  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  class Call;

  const rpc::CallAccess access_;
  const std::shared_ptr<const std::vector<std::string>> services_;
};

}  // namespace berth::gateway
