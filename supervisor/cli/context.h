#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <optional>
#include <string_view>

#include "common/proto_json/json_writer.h"
#include "supervisor/cli/client/client.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/error_report.h"
#include "supervisor/cli/format/table.h"
#include "supervisor/cli/options.h"

namespace berth::cli {

// What every verb needs: the world, the common options, the connection (made when it is first
// asked for) and the one way to print and to fail. Lives as long as the verb runs; one thread.
class Context {
 public:
  Context(Environment& environment, CommonOptions options);

  [[nodiscard]] Environment& environment() { return environment_; }
  [[nodiscard]] bool json() const { return options_.json; }

  // The endpoint that the verb talks to. Errors: kInvalidArgument.
  const Result<Endpoint>& endpoint();
  // What is shown to it. Errors: kInvalidArgument. Only after endpoint() has succeeded.
  const Result<Access>& access();
  // Connects on the first call and after forget_client(). Errors: kUnreachable.
  Reply<Client*> client();
  void forget_client() { client_.reset(); }

  // Writes to the standard output; text of others is made harmless where that is a terminal.
  void print(std::string_view text);
  // One JSON document, or with kLine one line of a stream.
  void print_json(const google::protobuf::Message& message, JsonWriter::Layout layout);
  void print_json(std::string_view json);
  void print_table(const Table& table);

  // Tells the person and returns how to end. With --json a refusal is printed as {"error":…}, too.
  ExitCode fail(const CallError& error, std::string_view model = {});
  // Tells and returns kNo.
  ExitCode refuse(std::string_view message, std::vector<std::string> hints = {});
  // Tells, with where to find help, and returns kUsage.
  ExitCode usage(std::string_view message);
  void tell(const Report& report);

 private:
  Environment& environment_;
  CommonOptions options_;
  std::optional<Result<Endpoint>> endpoint_;
  std::optional<Result<Access>> access_;
  std::unique_ptr<Client> client_;
};

}  // namespace berth::cli
