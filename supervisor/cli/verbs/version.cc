#include <string>

#include "common/proto_json/json_writer.h"
#include "common/proto_json/proto_json.h"
#include "common/text.h"
#include "common/version.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

std::string with_build(std::string_view version, std::string_view build) {
  std::string text = printable_line(version, 64);
  if (!build.empty()) text += " (" + printable_line(build, 64) + ")";
  return text;
}

}  // namespace

ExitCode run_version(Context& context) {
  std::optional<v1::ServerInfo> server;
  auto client = context.client();
  if (client) {
    if (auto reply = (*client)->server_info()) server = std::move(*reply);
  }
  if (context.json()) {
    JsonWriter json(JsonWriter::Layout::kIndented);
    json.begin_object();
    json.member("version", kVersion);
    json.member("build_id", kBuildId);
    json.key("server");
    if (server) {
      write_json(json, *server);
    } else {
      json.null();
    }
    json.end_object();
    context.print_json(json.str());
    return ExitCode::kOk;
  }
  context.print("berth  " + with_build(kVersion, kBuildId) + "\n");
  const std::string where = printable_line(context.endpoint()->text, 256);
  if (server) {
    context.print("berthd " + with_build(server->version(), server->build_id()) + " at " + where +
                  ", pid " + std::to_string(server->pid()) + ", " +
                  printable_line(server->state(), 32) + "\n");
  } else {
    context.print("berthd not reachable at " + where + "\n");
  }
  return ExitCode::kOk;
}

}  // namespace berth::cli
