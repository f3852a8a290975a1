// Prints the source file that has chat_template_names() of common/chat_template_names.h, as the
// libllama knows them that this is linked with. A program of the build; loads no backend.

#include <llama.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  const std::int32_t count = llama_chat_builtin_templates(nullptr, 0);
  if (count <= 0) {
    std::fputs("libllama names no chat templates\n", stderr);
    return 1;
  }
  std::vector<const char*> given(static_cast<std::size_t>(count));
  llama_chat_builtin_templates(given.data(), given.size());
  std::vector<std::string> names(given.begin(), given.end());
  std::sort(names.begin(), names.end());
  std::string text =
      "#include <array>\n\n#include \"common/chat_template_names.h\"\n\nnamespace berth {\n"
      "namespace {\n\nconstexpr auto kNames = std::to_array<std::string_view>({\n";
  for (const std::string& name : names) text += "    R\"name(" + name + ")name\",\n";
  text +=
      "});\n\n}  // namespace\n\nstd::span<const std::string_view> chat_template_names() {\n"
      "  return kNames;\n}\n\n}  // namespace berth\n";
  return std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}
