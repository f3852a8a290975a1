#include "supervisor/model_need.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "supervisor/core/memory/plan_book.h"
#include "supervisor/core/memory/saturating.h"
#include "supervisor/named_devices.h"

namespace berth {
namespace {

using catalog::Model;
using core::DomainBytes;
using core::DomainIndex;

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint32_t kLeastBatch = 512;          // worker/engine/engine.h
constexpr std::uint32_t kUndeclaredContext = 4096;  // as the catalogue takes it
// Foreign use is rounded up to so many parts of a domain's memory before it bounds a window:
// else each load would have another one, and nothing that was measured would be of use.
constexpr std::uint64_t kForeignParts = 32;
constexpr std::size_t kMaxAnswers = 4096;  // more models than that are not kept at once

// Of a model whose header does not tell.
constexpr std::uint64_t kGuessedOverhead = 256 * kMiB;
constexpr std::uint32_t kGuessedErrorPercent = 30;
constexpr std::uint64_t kGuessedErrorBytes = 64 * kMiB;

core::FlashAttention flash_attention(const std::string& name) {
  if (name == "on") return core::FlashAttention::kOn;
  return name == "off" ? core::FlashAttention::kOff : core::FlashAttention::kAuto;
}

// It is there, or somebody waits for it.
bool has_company(const core::Snapshot& snapshot, const std::string& model) {
  const bool resident = std::ranges::any_of(snapshot.entries, [&](const core::Entry& entry) {
    return entry.model != model &&
           (entry.state <= core::EntryState::kReady || entry.state == core::EntryState::kStuck);
  });
  return resident || std::ranges::any_of(snapshot.holds, [&](const core::Hold& hold) {
           return hold.model != model && hold.until > snapshot.now;
         });
}

// What nobody takes who stays: without pinned and stuck ones, and without other people's programs.
// A window that would only fit beside none of them would make the model wait for them in vain.
DomainBytes within_reach(const core::Snapshot& snapshot, const std::string& model) {
  DomainBytes reach;
  const std::size_t count = std::min(snapshot.domains.size(), core::kMaxDomains);
  for (std::size_t i = 0; i < count; ++i) {
    core::Domain domain = snapshot.domains[i];
    const std::uint64_t part = std::max<std::uint64_t>(domain.total / kForeignParts, 1);
    domain.foreign = core::saturating_multiply((domain.foreign + part - 1) / part, part);
    reach[static_cast<DomainIndex>(i)] = domain.limit();
  }
  for (const core::Entry& entry : snapshot.entries) {
    const bool stays = entry.pinned && entry.state <= core::EntryState::kReady;
    if (entry.state == core::EntryState::kStuck || (stays && entry.model != model)) {
      reach -= entry.charge;
    }
  }
  return reach;
}

core::ModelCost model_cost_of(const catalog::ModelParts& parts, const core::ServeShape& serve) {
  return core::model_cost(parts.model, serve, parts.draft ? &*parts.draft : nullptr,
                          parts.adapters);
}

}  // namespace

bool processor_repacks() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return true;
#endif
}

core::ModelCost guessed_cost(const Model& model) {
  const std::uint64_t bytes = core::saturating_add(model.file_bytes, model.file_bytes / 10);
  core::PartCost part;
  part.layers = {{.weights = bytes}};
  // Some layers are there, and some here; who knows how many.
  if (model.settings.gpu_layers.value_or(0) > 0) part.host_weights = bytes;
  core::ModelCost cost;
  cost.parts = {std::move(part)};
  cost.host_overhead = kGuessedOverhead;
  cost.device_overhead = core::ServeShape().device_context;
  cost.error_percent = kGuessedErrorPercent;
  cost.error_bytes = kGuessedErrorBytes;
  return cost;
}

void ModelNeeds::join(residency::MemoryAccess& access) {
  access.need = [this](const Model& model, const core::Snapshot& snapshot,
                       const core::Need& asked) { return need(model, snapshot, asked); };
  access.terms = [this](const Model& model, std::uint32_t window,
                        const core::Placement& placement) {
    return terms(model, window, placement);
  };
  access.would_fit = [this](const Model& model, const core::Snapshot& snapshot) {
    return would_fit(model, snapshot);
  };
  access.device_problem = [this, domains = access.domains](const Model& model) {
    return device_problem(model.settings, parts_.table(), domains());
  };
}

// --- windows

core::ServeShape ModelNeeds::serve_shape(const Model& model) const {
  const catalog::ModelSettings& settings = model.settings;
  core::ServeShape serve;
  serve.window = 0;
  serve.sequences = settings.sequences;
  const std::uint32_t drafted = settings.draft.empty() ? 0 : catalog::kDraftTokens;
  serve.batch = settings.batch != 0 ? settings.batch
                                    : std::max(kLeastBatch, settings.sequences * (1 + drafted));
  serve.kv_type = core::kv_type_from_name(settings.kv_type).value_or(serve.kv_type);
  serve.flash_attention = flash_attention(settings.flash_attention);
  serve.draft_tokens = catalog::kDraftTokens;
  serve.embeds = settings.embeddings || model.can_embed;
  serve.threads = settings.threads != 0 ? settings.threads : parts_.cores;
  serve.repacks = parts_.repacks;
  return serve;
}

ModelNeeds::Question ModelNeeds::question_of(const Model& model, core::Targets targets,
                                             const core::Snapshot& snapshot,
                                             const core::Need& need) const {
  const std::shared_ptr<const catalog::Config> config = parts_.config();
  Question question;
  question.parts = model.parts;
  question.serve = serve_shape(model);
  question.targets = std::move(targets);
  core::WindowTerms& terms = question.terms;
  terms.configured = model.settings.context;
  terms.declared = model.declared_context != 0 ? model.declared_context : kUndeclaredContext;
  terms.auto_max = config->memory.auto_context_max;
  terms.auto_share = config->memory.auto_share;
  terms.company = need.company || has_company(snapshot, model.name);
  if (terms.configured) return question;  // nothing else has a part in it
  question.whole = core::whole_budget(snapshot.domains);
  question.shared = core::whole_budget(snapshot.domains, terms.auto_share);
  question.reach = within_reach(snapshot, model.name);
  return question;
}

const ModelNeeds::Answer& ModelNeeds::answer_to(const std::string& name, Question question) {
  const auto known = answers_.find(name);
  if (known != answers_.end() && known->second.question == question) return known->second;
  if (answers_.size() >= kMaxAnswers) answers_.clear();
  const auto cost = [&question](std::uint32_t window) {
    core::ServeShape serve = question.serve;
    serve.window = window;
    return model_cost_of(*question.parts, serve);
  };
  const core::WindowFits fits = [&](std::uint32_t window, double share) {
    const DomainBytes& budget = share < 1 ? question.shared : question.whole;
    return core::fits_somewhere(cost(window), question.targets,
                                core::at_most(budget, question.reach));
  };
  Answer answer;
  answer.window = core::served_window(question.terms, fits);
  answer.cost = cost(answer.window.tokens);
  answer.question = std::move(question);
  return answers_.insert_or_assign(name, std::move(answer)).first->second;
}

core::ModelCost ModelNeeds::cost_of(const Model& model, std::uint32_t window) const {
  if (!model.parts) return guessed_cost(model);
  core::ServeShape serve = serve_shape(model);
  serve.window = window != 0 ? window : model.served_context;
  return model_cost_of(*model.parts, serve);
}

// --- needs

residency::MemoryNeed ModelNeeds::need(const Model& model, const core::Snapshot& snapshot,
                                       const core::Need& need) {
  DomainBytes excess;
  return find_need(model, snapshot, need, excess);
}

residency::MemoryNeed ModelNeeds::find_need(const Model& model, const core::Snapshot& snapshot,
                                            const core::Need& need, DomainBytes& excess) {
  if (model.settings.kind == catalog::Kind::kCommand) return command_need(model, snapshot);
  residency::MemoryNeed found;
  found.missing_devices = missing_devices(model.settings, parts_.table(), snapshot.domains);
  if (!found.missing_devices.empty()) return found;
  core::Targets targets;
  for (const NamedDevice& device : named_devices(model.settings, parts_.table())) {
    targets.devices.push_back(device.domain);
  }
  if (model.settings.gpu_layers) {
    targets.device_layers = static_cast<std::uint32_t>(std::max(*model.settings.gpu_layers, 0));
  }
  if (!model.parts) {
    if (targets.device_layers) targets.device_layers = std::min(*targets.device_layers, 1U);
    const core::ModelCost cost = guessed_cost(model);
    found.options = core::placement_options(cost, targets, snapshot, need);
    excess = measure(model, 0, cost, found.options);
    return found;
  }
  Question question = question_of(model, std::move(targets), snapshot, need);
  const DomainBytes budget =
      core::at_most(question.terms.company ? question.shared : question.whole, question.reach);
  const auto take = [&](const Answer& answer) {
    found.window = answer.window.tokens;
    found.bound = answer.window.bound;
    found.options = core::placement_options(answer.cost, answer.question.targets, snapshot, need);
    return measure(model, found.window, answer.cost, found.options);
  };
  excess = take(answer_to(model.name, question));
  const bool fits = std::ranges::any_of(found.options, [&](const core::PlacementOption& option) {
    return option.bytes.fits(budget);
  });
  if (excess.empty() || fits || question.terms.configured) return found;
  // Loads with that window took more than was predicted, and the window filled the budget: by as
  // much the next one is smaller. Else what ran once would be refused from then on.
  question.whole -= excess;
  question.shared -= excess;
  question.reach -= excess;
  take(answer_to(model.name, std::move(question)));
  return found;
}

DomainBytes ModelNeeds::measure(const Model& model, std::uint32_t window,
                                const core::ModelCost& cost,
                                std::vector<core::PlacementOption>& options) const {
  DomainBytes excess;
  if (!parts_.measured || !parts_.provenance) return excess;
  const core::Domains& domains = parts_.table().domains;
  core::Provenance provenance = parts_.provenance(model);
  if (window != 0) provenance.window = window;
  for (core::PlacementOption& option : options) {
    const core::MeasuredLoad* const known =
        parts_.measured(core::measurement_key(provenance, option.placement, domains));
    if (known == nullptr) continue;
    const DomainBytes predicted = option.bytes;
    option.bytes =
        core::with_measured(core::charge_of(cost, option.placement), *known, domains).total();
    const DomainBytes more = option.bytes - predicted;
    for (DomainIndex i = 0; i < core::kMaxDomains; ++i) excess[i] = std::max(excess[i], more[i]);
  }
  return excess;
}

std::string ModelNeeds::measured_key(const Model& model, std::uint32_t window,
                                     const core::Placement& placement) const {
  if (!parts_.provenance) return {};
  core::Provenance provenance = parts_.provenance(model);
  const bool is_command = model.settings.kind == catalog::Kind::kCommand;
  if (window != 0 && !is_command) provenance.window = window;
  return core::measurement_key(provenance, is_command ? core::Placement() : placement,
                               parts_.table().domains);
}

core::Charge ModelNeeds::terms(const Model& model, std::uint32_t window,
                               const core::Placement& placement) {
  if (model.settings.kind == catalog::Kind::kCommand) {
    return command_charge(model).value_or(core::Charge());
  }
  const auto known = answers_.find(model.name);
  const bool same = known != answers_.end() && known->second.question.parts == model.parts &&
                    known->second.window.tokens == window &&
                    known->second.question.serve == serve_shape(model);
  core::Charge charge =
      core::charge_of(same && model.parts ? known->second.cost : cost_of(model, window), placement);
  if (!parts_.measured) return charge;
  const core::MeasuredLoad* const load = parts_.measured(measured_key(model, window, placement));
  if (load == nullptr) return charge;
  return core::with_measured(std::move(charge), *load, parts_.table().domains);
}

std::optional<WouldFit> ModelNeeds::would_fit(const Model& model, const core::Snapshot& snapshot) {
  if (!model.parts || model.settings.kind == catalog::Kind::kCommand) return std::nullopt;
  core::Need none;
  none.model = model.name;
  DomainBytes excess;
  const residency::MemoryNeed now = find_need(model, snapshot, none, excess);
  if (!now.missing_devices.empty()) return std::nullopt;
  const auto known = answers_.find(model.name);
  if (known == answers_.end()) return std::nullopt;
  const core::Targets targets = known->second.question.targets;
  const DomainBytes whole = core::whole_budget(snapshot.domains) - excess;
  core::ServeShape serve = serve_shape(model);
  return core::would_fit(
      now.window, serve.sequences, [&](std::uint32_t window, std::uint32_t sequences) {
        serve.window = window;
        serve.sequences = sequences;
        return core::fits_somewhere(model_cost_of(*model.parts, serve), targets, whole);
      });
}

// --- commands

residency::MemoryNeed ModelNeeds::command_need(const Model& model,
                                               const core::Snapshot& snapshot) const {
  residency::MemoryNeed found;
  found.missing_devices = missing_devices(model.settings, parts_.table(), snapshot.domains);
  if (!found.missing_devices.empty()) return found;
  if (const auto charge = command_charge(model)) {
    found.options = {{.placement = {}, .bytes = charge->total()}};
  }
  return found;
}

std::optional<core::Charge> ModelNeeds::command_charge(const Model& model) const {
  const core::DomainTable& table = parts_.table();
  core::Charge charge;
  for (const auto& [name, bytes] : model.settings.memory) {
    std::optional<DomainIndex> domain = table.find(name);
    if (!domain) {
      if (const auto device = named_device(name, table)) domain = device->domain;
    }
    if (domain) charge.overhead.bytes += DomainBytes::in(*domain, bytes);
  }
  charge.overhead.basis = core::Basis::kDeclared;
  if (!model.settings.memory.empty()) return charge;
  if (!parts_.measured) return std::nullopt;
  const core::MeasuredLoad* const load = parts_.measured(measured_key(model, 0, {}));
  if (load == nullptr) return std::nullopt;
  for (const core::MeasuredDomain& row : load->domains) {
    const auto domain = table.find(row.domain);
    if (!domain) continue;
    const std::uint64_t bytes = std::max(row.process.value_or(0), row.at_least.value_or(0));
    charge.overhead.bytes += DomainBytes::in(*domain, bytes);
  }
  charge.overhead.basis = core::Basis::kMeasured;
  if (charge.total().empty()) return std::nullopt;
  return charge;
}

}  // namespace berth
