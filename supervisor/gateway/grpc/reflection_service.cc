#include "supervisor/gateway/grpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/text.h"
#include "supervisor/rpc/error_detail.h"

namespace berth::gateway {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr std::size_t kMostNameBytes = 128;
constexpr std::size_t kMostQuestionBytes = 16UL * 1024UL;

void collect(const FileDescriptor& file, std::vector<const FileDescriptor*>& files) {
  if (std::ranges::find(files, &file) != files.end()) return;
  files.push_back(&file);
  for (int i = 0; i < file.dependency_count(); ++i) collect(*file.dependency(i), files);
}

// The file and all that it imports.
std::vector<const FileDescriptor*> with_imports(const FileDescriptor& file) {
  std::vector<const FileDescriptor*> files;
  collect(file, files);
  return files;
}

// Whether one of the services needs the file.
bool is_offered(const FileDescriptor& file, const std::vector<std::string>& services) {
  return std::ranges::any_of(services, [&](const std::string& name) {
    const auto* service = DescriptorPool::generated_pool()->FindServiceByName(name);
    if (service == nullptr) return false;
    const auto files = with_imports(*service->file());
    return std::ranges::find(files, &file) != files.end();
  });
}

void put_file(const FileDescriptor* file, const std::string& name,
              const std::vector<std::string>& services, ServerReflectionResponse& response) {
  if (file == nullptr || !is_offered(*file, services)) {
    response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
    response.mutable_error_response()->set_error_message(
        "The server offers nothing named " + printable_line(name, kMostNameBytes) + ".");
    return;
  }
  for (const FileDescriptor* one : with_imports(*file)) {
    google::protobuf::FileDescriptorProto proto;
    one->CopyTo(&proto);
    proto.SerializeToString(
        response.mutable_file_descriptor_response()->add_file_descriptor_proto());
  }
}

// Of proto3 messages, which have no extensions.
void put_extensions(const std::string& type, const std::vector<std::string>& services,
                    ServerReflectionResponse& response) {
  const auto* message = DescriptorPool::generated_pool()->FindMessageTypeByName(type);
  if (message == nullptr || !is_offered(*message->file(), services)) {
    return put_file(nullptr, type, services, response);
  }
  response.mutable_all_extension_numbers_response()->set_base_type_name(type);
}

ServerReflectionResponse answer(const ServerReflectionRequest& request,
                                const std::vector<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(name);
      }
      break;
    case ServerReflectionRequest::kFileByFilename: {
      const std::string& name = request.file_by_filename();
      put_file(pool.FindFileByName(name), name, services, response);
      break;
    }
    case ServerReflectionRequest::kFileContainingSymbol: {
      const std::string& name = request.file_containing_symbol();
      put_file(pool.FindFileContainingSymbol(name), name, services, response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      put_extensions(request.all_extension_numbers_of_type(), services, response);
      break;
    case ServerReflectionRequest::kFileContainingExtension:
      put_file(nullptr, request.file_containing_extension().containing_type(), services, response);
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("The request asks for nothing.");
      break;
  }
  return response;
}

std::vector<std::string> with_own(std::vector<std::string> services) {
  services.emplace_back(grpc::reflection::v1alpha::ServerReflection::service_full_name());
  return services;
}

}  // namespace

// One stream: an answer to each question, one at a time. One operation runs until it is finished,
// which fails where the client goes. Deletes itself when gRPC is done with it.
class ReflectionService::Call
    : public grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse> {
 public:
  explicit Call(std::shared_ptr<const std::vector<std::string>> services)
      : services_(std::move(services)) {
    StartRead(&request_);
  }
  // A call that is refused.
  Call(grpc::CallbackServerContext& context, const v1::ErrorDetail& detail, const Error& error) {
    context.AddTrailingMetadata(rpc::kErrorTrailer, rpc::to_trailer(detail));
    Finish(rpc::to_status(error));
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);  // the client asks nothing more, or is gone
    if (request_.ByteSizeLong() > kMostQuestionBytes) {
      return Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                 "No name that is served is as long as that."));
    }
    response_ = answer(request_, *services_);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "The client went away."));
    StartRead(&request_);
  }
  void OnDone() override { const std::unique_ptr<Call> self(this); }

  const std::shared_ptr<const std::vector<std::string>> services_;
  ServerReflectionRequest request_;
  ServerReflectionResponse response_;
};

ReflectionService::ReflectionService(rpc::CallAccess access, std::vector<std::string> services)
    : access_(std::move(access)),
      services_(std::make_shared<const std::vector<std::string>>(with_own(std::move(services)))) {}

grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>*
ReflectionService::ServerReflectionInfo(grpc::CallbackServerContext* context) {
  const Result<core::Caller> caller = access_.caller_of(*context);
  // OnDone deletes it.
  if (caller) return std::make_unique<Call>(services_).release();
  const v1::ErrorDetail detail = rpc::detail_for(access_, {}, caller.error(), {});
  Error told = caller.error();
  told.message = detail.message();
  return std::make_unique<Call>(*context, detail, told).release();
}

}  // namespace berth::gateway
