#include "supervisor/cli/context.h"

#include <utility>

#include "common/proto_json/json_writer.h"
#include "common/proto_json/proto_json.h"
#include "common/text.h"
#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

constexpr std::chrono::seconds kConnectDeadline{10};
constexpr std::size_t kMessageBytes = 4096;

}  // namespace

Context::Context(Environment& environment, CommonOptions options)
    : environment_(environment), options_(std::move(options)) {}

const Result<Endpoint>& Context::endpoint() {
  if (!endpoint_) endpoint_ = find_endpoint(options_.endpoint, environment_);
  return *endpoint_;
}

const Result<Access>& Context::access() {
  if (!access_) access_ = find_access(options_, endpoint().value(), environment_);
  return *access_;
}

Reply<Client*> Context::client() {
  if (!client_) {
    auto connected = connect(endpoint().value(), access().value(), kConnectDeadline);
    if (!connected) return tl::unexpected(std::move(connected.error()));
    client_ = std::move(*connected);
  }
  return client_.get();
}

void Context::print(std::string_view text) {
  if (environment_.out.terminal()) {
    environment_.out.write(harmless(text));
  } else {
    environment_.out.write(text);
  }
}

void Context::print_json(const google::protobuf::Message& message, JsonWriter::Layout layout) {
  print_json(to_json(message, layout));
}

void Context::print_json(std::string_view json) {
  const std::string text = environment_.out.terminal() ? harmless_json(json) : std::string(json);
  environment_.out.write(text + "\n");
}

void Context::print_table(const Table& table) {
  const bool terminal = environment_.out.terminal();
  const int columns = terminal ? environment_.columns() : 0;
  environment_.out.write(table.render(columns > 0 ? static_cast<std::size_t>(columns) : 0,
                                      environment_.colours(environment_.out)));
}

ExitCode Context::fail(const CallError& error, std::string_view model) {
  switch (error.kind) {
    case CallError::Kind::kUnreachable:
      tell(report_unreachable(endpoint().value(), error.message));
      return ExitCode::kUnreachable;
    case CallError::Kind::kRefused:
      if (options_.json && !error.delivered) {
        JsonWriter json(JsonWriter::Layout::kLine);
        json.begin_object();
        json.key("error");
        write_json(json, error.detail);
        json.end_object();
        print_json(json.str());
      }
      tell(report_refusal(error.detail, model, environment_.wall_now()));
      return ExitCode::kNo;
    case CallError::Kind::kStopped:
      return ExitCode::kInterrupted;
  }
  return ExitCode::kNo;
}

ExitCode Context::refuse(std::string_view message, std::vector<std::string> hints) {
  tell(Report{printable_line(message, kMessageBytes), std::move(hints)});
  return ExitCode::kNo;
}

ExitCode Context::usage(std::string_view message) {
  tell(Report{printable_line(message, kMessageBytes), {"see 'berth --help'"}});
  return ExitCode::kUsage;
}

void Context::tell(const Report& report) {
  environment_.err.write(to_text(report, environment_.colours(environment_.err)));
}

}  // namespace berth::cli
