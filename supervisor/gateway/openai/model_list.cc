#include "supervisor/gateway/openai/model_list.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "common/json_text.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/gateway/openai/answer_parts.h"

namespace berth::gateway::openai {
namespace {

using Standing = std::vector<core::FailureRecord>;

void append_texts(std::string& out, std::string_view name, const std::vector<std::string>& texts) {
  out += ",\"";
  out += name;
  out += "\":[";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, texts[i]);
  }
  out += ']';
}

void append_number(std::string& out, std::string_view name, std::uint64_t number) {
  if (number == 0) return;  // not known
  out += ",\"";
  out += name;
  out += "\":";
  append_whole(out, number);
}

void append_text(std::string& out, std::string_view name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  append_json_string(out, text);
}

// What a model can be asked for. Nobody knows it of a program before it runs.
std::vector<std::string> capabilities(const catalog::Model& model) {
  std::vector<std::string> all;
  if (model.settings.kind == catalog::Kind::kCommand) return all;
  if (model.settings.embeddings) return {"embeddings"};
  if (model.can_chat) all.emplace_back("chat");
  all.emplace_back("completion");
  if (model.can_embed) all.emplace_back("embeddings");
  return all;
}

// As in berth.v1.Model: "broken" besides, of files that cannot be used.
std::string state_of(const catalog::Model& model, const residency::ModelNow& now,
                     const Standing& standing) {
  if (!model.problem.empty()) return "broken";
  const bool failed =
      std::any_of(standing.begin(), standing.end(),
                  [&](const core::FailureRecord& record) { return record.model == model.name; });
  return failed && now.state == "absent" ? "failed" : now.state;
}

void append_model(std::string& out, const catalog::Model& model,
                  const residency::Services& services, const Standing& standing) {
  const residency::ModelNow now = services.residency.now_of(model);
  out += "{\"id\":";
  append_json_string(out, model.name);
  const auto created = std::chrono::floor<std::chrono::seconds>(model.modified);
  out += ",\"object\":\"model\",\"created\":" + std::to_string(created.time_since_epoch().count()) +
         ",\"owned_by\":\"berth\"";
  append_texts(out, "aliases", model.aliases);
  append_text(out, "state", state_of(model, now, standing));
  append_texts(out, "capabilities", capabilities(model));
  append_number(out, "max_model_len", now.window);
  out += ",\"meta\":{\"kind\":";
  out += model.settings.kind == catalog::Kind::kCommand ? "\"command\"" : "\"llama\"";
  append_number(out, "n_ctx", now.window);
  append_number(out, "n_ctx_train", model.declared_context);
  append_number(out, "n_params", model.parameters);
  append_number(out, "size", model.file_bytes);
  if (!model.architecture.empty()) append_text(out, "architecture", model.architecture);
  if (!model.quantization.empty()) append_text(out, "quantization", model.quantization);
  out += "}}";
}

}  // namespace

std::string list_models(const residency::Services& services) {
  const Standing standing = services.residency.standing_failures();
  std::string out = R"({"object":"list","data":[)";
  bool first = true;
  const std::shared_ptr<const catalog::Catalog> catalog = services.catalog();
  for (const auto& model : catalog->models()) {
    if (!model->problem.empty()) continue;
    if (!first) out += ',';
    first = false;
    append_model(out, *model, services, standing);
  }
  out += "]}\n";
  return out;
}

Result<std::string> show_model(const residency::Services& services, const std::string& name) {
  const auto model = services.catalog()->find(name);
  if (!model) return fail(model.error());
  std::string out;
  append_model(out, **model, services, services.residency.standing_failures());
  out += '\n';
  return out;
}

}  // namespace berth::gateway::openai
