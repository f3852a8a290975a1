#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

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

// Over all domains; `berth memory` tells them apart.
std::string shown_charge(const v1::Instance& instance) {
  std::uint64_t sum = 0;
  for (const v1::DomainCharge& charge : instance.charge()) sum += charge.bytes();
  return sum > 0 ? format_bytes(sum) : "-";
}

std::string shown_ttl(const v1::Instance& instance) {
  if (instance.pinned()) return "pinned";
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
  const bool charges = std::ranges::any_of(
      reply->instances(), [](const v1::Instance& instance) { return !instance.charge().empty(); });
  std::vector<Table::Column> titles{{"MODEL", false, true},
                                    {"STATE"},
                                    {"PID", true},
                                    {parts ? "MEMORY (WEIGHTS + KV + WORKING)" : "MEMORY"},
                                    {"RESIDENT", true}};
  if (charges) titles.push_back({"CHARGED", true});
  for (const char* title : {"CONTEXT", "ACTIVE", "WAIT", "UNLOAD IN"}) {
    titles.push_back({title, true});
  }
  Table table(std::move(titles));
  for (const v1::Instance& instance : reply->instances()) {
    std::vector<Table::Cell> row{
        {printable_line(instance.model(), 256)},
        {shown_state(instance), style_of(instance.state())},
        {instance.pid() > 0 ? std::to_string(instance.pid()) : "-"},
        {shown_memory(instance, parts)},
        {instance.resident_bytes() > 0 ? format_bytes(instance.resident_bytes()) : "-"}};
    if (charges) row.push_back({shown_charge(instance)});
    row.push_back({instance.window() > 0 ? std::to_string(instance.window()) : "-"});
    row.push_back({std::to_string(instance.active())});
    row.push_back({std::to_string(instance.waiting())});
    row.push_back({shown_ttl(instance)});
    table.add(std::move(row));
  }
  if (table.empty()) {
    context.print("no model is loaded\n");
    return ExitCode::kOk;
  }
  context.print_table(table);
  return ExitCode::kOk;
}

}  // namespace berth::cli
