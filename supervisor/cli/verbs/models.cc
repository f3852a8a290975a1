#include <string>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/error_report.h"
#include "supervisor/cli/format/failure_text.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kNameBytes = 256;
constexpr std::size_t kProblemBytes = 1024;

Style style_of(const v1::Model& model) {
  if (!model.problem().empty() || model.state() == "failed") return Style::kBad;
  if (model.state() == "ready" || model.state() == "busy") return Style::kGood;
  return Style::kPlain;
}

std::string shown_state(const v1::Model& model) {
  if (!model.problem().empty() && (model.state().empty() || model.state() == "absent")) {
    return "broken";
  }
  return model.state().empty() || model.state() == "absent" ? "-"
                                                            : printable_line(model.state(), 32);
}

std::string shown_problem(const v1::Model& model, WallTime now) {
  if (!model.problem().empty()) return printable_line(model.problem(), kProblemBytes);
  if (!model.has_failure()) return "";
  const v1::Failure& failure = model.failure();
  std::string text = failure.class_();
  const auto add = [&text](const std::string& more) {
    if (!more.empty()) text += ": " + more;
  };
  add(exit_words(failure));
  add(failure.reason());
  return printable_line(text, kProblemBytes) + " (" + ago(failure.since_unix_ms(), now) + ")";
}

}  // namespace

ExitCode run_models(Context& context) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  const auto reply = (*client)->list_models();
  if (!reply) return context.fail(reply.error());
  if (context.json()) {
    context.print_json(*reply, JsonWriter::Layout::kIndented);
    return ExitCode::kOk;
  }
  Table table({{"NAME", false, true},
               {"SIZE", true},
               {"PARAMS", true},
               {"QUANT"},
               {"CONTEXT", true},
               {"CHAT"},
               {"STATE"},
               {"PROBLEM"}});
  const WallTime now = context.environment().wall_now();
  for (const v1::Model& model : reply->models()) {
    const bool served = model.problem().empty() && model.context() > 0;
    const bool known = model.parameters() > 0;
    table.add({{printable_line(model.name(), kNameBytes)},
               {model.file_bytes() > 0 ? format_bytes(model.file_bytes()) : "-"},
               {known ? format_count(model.parameters()) : "-"},
               {model.quantization().empty() ? "-" : printable_line(model.quantization(), 32)},
               {served ? std::to_string(model.context()) : "-"},
               {model.can_chat() ? "yes" : "no"},
               {shown_state(model), style_of(model)},
               {shown_problem(model, now), Style::kBad}});
  }
  if (table.empty()) {
    context.print("no models: put a *.gguf file into one of the configured model directories\n");
    return ExitCode::kOk;
  }
  context.print_table(table);
  return ExitCode::kOk;
}

ExitCode run_model_names(Context& context) {
  auto client = context.client();
  if (!client) return ExitCode::kOk;
  const auto reply = (*client)->list_models();
  if (!reply) return ExitCode::kOk;
  for (const v1::Model& model : reply->models()) {
    context.print(printable_line(model.name(), kNameBytes) + "\n");
  }
  return ExitCode::kOk;
}

}  // namespace berth::cli
