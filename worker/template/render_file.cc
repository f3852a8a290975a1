#include "worker/template/render_file.h"

#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

#include "worker/template/chat_template.h"
#include "worker/template/json_input.h"

namespace berth::worker {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Reason::kNotFound, "The file " + path + " cannot be read.");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string text_of(const Json& input, const char* name) {
  const auto value = input.find(name);
  return value != input.end() && value->is_string() ? value->get<std::string>() : std::string();
}

std::string json_of(const Json& input, const char* name) {
  const auto value = input.find(name);
  return value == input.end() || value->is_null() ? std::string() : value->dump();
}

}  // namespace

Result<std::string> render_file(const std::string& template_path, const std::string& input_path,
                                bool adapt) {
  auto source = read_file(template_path);
  if (!source) return source;
  auto text = read_file(input_path);
  if (!text) return text;
  const auto input = parse_object(*text, "", "The input's members");
  if (!input) return fail(input.error());
  auto parsed =
      ChatTemplate::parse(*source, text_of(*input, "bos_token"), text_of(*input, "eos_token"));
  if (!parsed) return fail(parsed.error());

  const auto messages = json_of(*input, "messages");
  const auto tools = json_of(*input, "tools");
  const auto arguments = json_of(*input, "chat_template_kwargs");
  const auto prompt = input->find("add_generation_prompt");
  const ChatRequest request{messages, tools, arguments,
                            prompt == input->end() || !prompt->is_boolean() || prompt->get<bool>()};
  if (adapt) return parsed->adapted(request);

  std::vector<std::string> control;
  if (const auto texts = input->find("control_texts"); texts != input->end() && texts->is_array()) {
    for (const auto& one : *texts) {
      if (one.is_string()) control.push_back(one.get<std::string>());
    }
  }
  const auto now = input->find("now");
  const auto time = now != input->end() && now->is_number_integer()
                        ? static_cast<std::time_t>(now->get<std::int64_t>())
                        : std::time(nullptr);
  const auto rendered = parsed->render(request, ControlTexts(control), time);
  if (!rendered) return fail(rendered.error());
  std::string prompt_text;
  for (const auto& part : rendered->parts) prompt_text += part.text;
  return prompt_text;
}

}  // namespace berth::worker
