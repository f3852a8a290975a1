#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

// From this width on the parts of the memory are shown, too.
constexpr int kWide = 110;

Style style_of(const std::string& state) {
  if (state == "ready" || state == "busy") return Style::kGood;
  if (state == "stuck") return Style::kBad;
  return Style::kWarning;
}

std::string shown_state(const v1::Instance& instance) {
  std::string state = printable_line(instance.state(), 32);
  if (instance.has_loading()) {
    const double percent = std::floor(static_cast<double>(instance.loading().fraction()) * 100);
    state += " " + std::to_string(static_cast<int>(percent)) + " %";
  }
  return state;
}

// "1.79 GiB (1.2 + 0.5 + 0.1)": weights, KV cache and working memory in the unit of their sum.
std::string shown_memory(const v1::Instance& instance, bool parts) {
  const std::uint64_t sum =
      instance.weights_bytes() + instance.kv_bytes() + instance.working_bytes();
  if (sum == 0) return "-";
  std::string text = format_bytes(sum);
  if (!parts) return text;
  double unit = 1;
  while (static_cast<double>(sum) / unit >= 1024) unit *= 1024;
  std::array<char, 96> detail{};
  std::snprintf(detail.data(), detail.size(), " (%.1f + %.1f + %.1f)",
                static_cast<double>(instance.weights_bytes()) / unit,
                static_cast<double>(instance.kv_bytes()) / unit,
                static_cast<double>(instance.working_bytes()) / unit);
  return text + detail.data();
}

std::string shown_ttl(const v1::Instance& instance) {
  if (!instance.has_ttl_ms()) return "-";
  return format_seconds(std::chrono::milliseconds(instance.ttl_ms()));
}

}  // namespace

ExitCode run_ps(Context& context) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  const auto reply = (*client)->list_instances();
  if (!reply) return context.fail(reply.error());
  if (context.json()) {
    context.print_json(*reply, JsonWriter::Layout::kIndented);
    return ExitCode::kOk;
  }
  Environment& environment = context.environment();
  const int columns = environment.out.terminal() ? environment.columns() : 0;
  const bool parts = columns == 0 || columns >= kWide;
  Table table({{"MODEL", false, true},
               {"STATE"},
               {"PID", true},
               {parts ? "MEMORY (WEIGHTS + KV + WORKING)" : "MEMORY"},
               {"RESIDENT", true},
               {"CONTEXT", true},
               {"ACTIVE", true},
               {"WAIT", true},
               {"UNLOAD IN", true}});
  for (const v1::Instance& instance : reply->instances()) {
    table.add({{printable_line(instance.model(), 256)},
               {shown_state(instance), style_of(instance.state())},
               {instance.pid() > 0 ? std::to_string(instance.pid()) : "-"},
               {shown_memory(instance, parts)},
               {instance.resident_bytes() > 0 ? format_bytes(instance.resident_bytes()) : "-"},
               {instance.window() > 0 ? std::to_string(instance.window()) : "-"},
               {std::to_string(instance.active())},
               {std::to_string(instance.waiting())},
               {shown_ttl(instance)}});
  }
  if (table.empty()) {
    context.print("no model is loaded\n");
    return ExitCode::kOk;
  }
  context.print_table(table);
  return ExitCode::kOk;
}

}  // namespace berth::cli
