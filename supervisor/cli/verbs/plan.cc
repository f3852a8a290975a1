#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/format/memory_text.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/verbs/verbs.h"

namespace berth::cli {
namespace {

constexpr std::size_t kNameBytes = 256;
constexpr std::size_t kSentenceBytes = 2048;

std::string name(const std::string& text) {
  return printable_line(text, kNameBytes);
}

bool is_refused(const v1::ModelPlan& plan) {
  return plan.decision() == "refuse";
}

// Requests for a model that is there are served, whatever became of another load.
bool fails(const v1::ModelPlan& plan) {
  return plan.has_failure() && plan.decision() != "resident";
}

// What decided the window, for people.
std::string bound_words(const std::string& bound) {
  if (bound == "configured") return "as it is configured";
  if (bound == "declared") return "as the model declares";
  if (bound == "probe") return "as the context probe found";
  if (bound == "auto_context_max") return "bound by memory.auto_context_max";
  if (bound == "budget") return "bound by the memory budget";
  if (bound == "auto_share") return "bound by memory.auto_share, as other models are there";
  if (bound == "floor") return "the least that berth serves by itself";
  return name(bound);
}

std::string window_line(const v1::ModelPlan& plan) {
  if (plan.window() == 0) return {};
  std::string text = "window: " + std::to_string(plan.window()) + " tokens";
  if (!plan.window_bound().empty()) text += ", " + bound_words(plan.window_bound());
  return text + "; " + counted(plan.sequences(), "sequence") + "\n";
}

std::string layers_line(const v1::ModelPlan& plan) {
  std::string text;
  for (const v1::LayerShare& share : plan.layers()) {
    text += (text.empty() ? "layers: " : ", ") + std::to_string(share.layers()) + " on " +
            name(share.domain());
  }
  return text.empty() ? text : text + "\n";
}

std::string term_text(const v1::DomainCharge& charge, const v1::ChargeTerm& term) {
  return charge.has_weights() ? format_bytes(term.bytes()) : "-";
}

// Of a refusal what no eviction would give, as its sentence counts it.
std::uint64_t missing_of(const v1::DomainPlan& domain, bool refused) {
  return refused ? domain.deficit_bytes() : domain.missing_bytes();
}

Table domains_table(const v1::ModelPlan& plan) {
  const bool refused = is_refused(plan);
  Table table({{"DOMAIN", false, true},
               {"WEIGHTS", true},
               {"KV", true},
               {"WORKING", true},
               {"OVERHEAD", true},
               {"NEEDED", true},
               {"LIMIT", true},
               {"AVAILABLE", true},
               {"MISSING", true},
               {"NUMBERS"}});
  for (const v1::DomainPlan& domain : plan.domains()) {
    const v1::DomainCharge& charge = domain.charge();
    const std::uint64_t missing = missing_of(domain, refused);
    table.add(
        {{name(domain.domain())},
         {term_text(charge, charge.weights())},
         {term_text(charge, charge.kv())},
         {term_text(charge, charge.working())},
         {term_text(charge, charge.overhead())},
         {format_bytes(domain.needed_bytes())},
         {format_bytes(domain.limit_bytes())},
         {format_bytes(domain.available_bytes())},
         {missing > 0 ? format_bytes(missing) : "-", missing > 0 ? Style::kWarning : Style::kPlain},
         {basis_text(charge)}});
  }
  return table;
}

Table victims_table(const v1::ModelPlan& plan) {
  Table table({{"STOPPED FOR IT", false, true}, {"GIVES"}, {"COST", true}, {"WHY IT MAY GO"}});
  for (const v1::PlanVictim& victim : plan.victims()) {
    std::string_view why = "idle";
    if (victim.kind() == "abandoned_load") why = "nobody waits for its load any more";
    if (victim.kind() == "idle_work") why = "only idle work uses it";
    const auto cost = std::chrono::milliseconds(
        static_cast<std::int64_t>(std::clamp(victim.cost_seconds(), 0.0, 1e9) * 1000));
    table.add({{name(victim.model())},
               {amounts_text(victim.charge())},
               {format_duration_human(cost)},
               {std::string(why)}});
  }
  return table;
}

std::string failure_text(const v1::ModelPlan& plan) {
  return "a failure stands against " + name(plan.model()) + " (" +
         printable_line(plan.failure().class_(), 32) + "): requests are refused for it";
}

std::string failure_hint(const v1::ModelPlan& plan) {
  return "'berth why " + name(plan.model()) + "' tells more";
}

std::vector<std::string> refusal_hints(const v1::ModelPlan& plan) {
  std::vector<std::string> hints;
  if (plan.has_failure()) hints.push_back(failure_text(plan) + ", too; " + failure_hint(plan));
  if (plan.has_would_fit()) {
    const std::string context = std::to_string(plan.would_fit().context());
    const std::string sequences = std::to_string(plan.would_fit().sequences());
    hints.push_back("would fit: 'berth plan " + name(plan.model()) + " --context " + context +
                    " --sequences " + sequences + "'");
  }
  if (plan.refusal() == "pinned") {
    const auto& configured = plan.pinned_by_configuration();
    for (const std::string& model : plan.blockers()) {
      const bool by_hand = std::ranges::find(configured, model) == configured.end();
      hints.push_back(by_hand ? "'berth unpin " + name(model) + "' lets it go"
                              : "the configuration pins " + name(model) +
                                    ": 'pin = false' there, and a reload, lets it go");
    }
  }
  return hints;
}

void print_plan(Context& context, const v1::ModelPlan& plan) {
  if (!is_refused(plan)) context.print(printable_line(plan.sentence(), kSentenceBytes) + "\n");
  context.print(window_line(plan) + layers_line(plan));
  if (plan.domains_size() > 0) context.print_table(domains_table(plan));
  if (plan.victims_size() > 0) context.print_table(victims_table(plan));
}

}  // namespace

ExitCode run_plan(Context& context, const PlanOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::PlanModelRequest request;
  request.set_model(options.model);
  if (options.context) request.set_context(*options.context);
  if (options.sequences) request.set_sequences(*options.sequences);
  const auto plan = (*client)->plan(request);
  if (!plan) return context.fail(plan.error(), options.model);
  if (context.json()) {
    context.print_json(*plan, JsonWriter::Layout::kIndented);
  } else {
    print_plan(context, *plan);
  }
  if (is_refused(*plan)) {
    return context.refuse(printable_line(plan->sentence(), kSentenceBytes), refusal_hints(*plan));
  }
  if (fails(*plan)) return context.refuse(failure_text(*plan), {failure_hint(*plan)});
  return ExitCode::kOk;
}

}  // namespace berth::cli
