#include "supervisor/catalog/config_page.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/text.h"
#include "supervisor/catalog/setting_table.h"
#include "supervisor/catalog/setting_value.h"

namespace berth::catalog {
namespace {

constexpr std::string_view kPageStart = R"(# Configuration

<!-- Made from the table of settings (supervisor/catalog/setting_table.cc). To update it:
     BERTH_UPDATE_DOCS=1 ctest -R ConfigPage -->

`berthd` reads one TOML file: the one of `--config FILE`, else that of the environment variable
`BERTH_CONFIG`, else `/etc/berth/berth.toml`. `deploy/berth.toml.example` holds every setting with its
default, ready to be copied. Every setting may be left out.

- `berth config check FILE` says all that is wrong with a file, without a server.
- `berth config show` prints every setting's effective value and where it came from: `default`, `demo`
  or `FILE:LINE`.
- An unknown key, a wrong type or a value out of range stops the start, with the file and line, the key,
  what was expected and what was found, and the nearest known key.
- Sizes are strings with a unit of 1024: `"512MiB"`, `"8GiB"` (`B`, `KiB`, `MiB`, `GiB`, `TiB`).
  Durations are strings: `"250ms"`, `"30s"`, `"5m"`, `"1h30m"`; `0` needs no unit.
- Paths may be relative to the configuration file. `~` is not expanded. The path of a Unix socket has
  at most 107 bytes.
- A file has at most 1 MiB, a string 4096 bytes, a list 4096 elements.

Settings marked *not used yet* are checked, but this version does nothing with them; `berthd` names
those that you set when it starts.

`berthd --demo DIR` needs no file. It keeps everything inside DIR: the socket `DIR/run/berth.sock`, HTTP
on `127.0.0.1:11500`, state in `DIR/state`, logs in `DIR/log`, models in `DIR/models`. If there is a
`DIR/berth.toml`, what it sets wins.
)";

constexpr std::string_view kPageEnd = R"(
## Example

```toml
[server]
http = "127.0.0.1:11500"

[defaults]
ttl = "10m"

[models]
dirs = ["/srv/models"]

[model."qwen3-8b"]
path = "/srv/models/qwen3-8b-q4_k_m.gguf"
aliases = ["gpt-4o-mini"]
context = 16384
```
)";

// `[server]`, `[model."NAME"]`
std::string heading_of(const SectionSpec& section) {
  std::string out = "[" + std::string(section.name);
  if (!section.instance.empty()) out += ".\"" + std::string(section.instance) + "\"";
  return out + "]";
}

// Nothing in a cell may end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string row(const SettingSpec& spec) {
  std::string doc(spec.doc);
  if (spec.applies == Applies::kCommand) doc = "For `kind = \"command\"`. " + doc;
  if (!spec.used) doc += " *Not used yet.*";
  return "| `" + std::string(spec.key) + "` | " + cell(describe_expected(spec)) + " | `" +
         cell(spec.fallback) + "` | " + cell(doc) + " |\n";
}

// `text` in lines of at most 98 bytes, each behind "# ".
std::string comment(std::string_view text) {
  constexpr std::size_t kWidth = 98;
  std::string out;
  while (!text.empty()) {
    std::size_t length = text.size();
    if (length > kWidth) {
      length = text.rfind(' ', kWidth);
      if (length == std::string_view::npos) length = text.size();
    }
    out += "# " + std::string(text.substr(0, length)) + "\n";
    text.remove_prefix(std::min(text.size(), length + 1));
  }
  return out;
}

std::string without_backticks(std::string_view text) {
  std::string out(text);
  std::erase(out, '`');
  return out;
}

}  // namespace

std::string configuration_page() {
  std::string out(kPageStart);
  for (const SectionSpec& section : all_sections()) {
    out += "\n## `" + heading_of(section) + "`\n\n" + std::string(section.doc) + "\n";
    if (section.section == Section::kDefaults) continue;
    out += "\n| Key | Takes | Default | Meaning |\n|---|---|---|---|\n";
    for (const SettingSpec* spec : settings_of(section.section)) out += row(*spec);
  }
  return out + std::string(kPageEnd);
}

std::string example_file() {
  std::string out =
      "# Configuration of berthd. Every setting is shown with its default; take the # away to "
      "change\n"
      "# it. The settings are explained in docs/configuration.md. Those marked (*) are checked, "
      "but\n"
      "# not used by this version.\n"
      "# Check it with: berth config check FILE\n";
  for (const SectionSpec& section : all_sections()) {
    const bool several = !section.instance.empty();
    out += "\n" + comment(without_backticks(section.doc));
    // A section of a device or a model that is not there would be one too many.
    out += (several ? "#" : "") + heading_of(section) + "\n";
    if (section.section == Section::kDefaults) continue;
    for (const SettingSpec* spec : settings_of(section.section)) {
      out += "\n" + comment(without_backticks(spec->doc) + (spec->used ? "" : " (*)"));
      out += "#" + std::string(spec->key) + " = " + std::string(spec->fallback) + "\n";
    }
  }
  return out;
}

std::string show_config(const Config& config) {
  std::string out;
  std::string open;
  for (const Setting& setting : config.settings) {
    // The key's last part is always a bare word.
    const std::size_t dot = setting.key.rfind('.');
    const std::string section = setting.key.substr(0, dot);
    if (section != open) {
      if (!out.empty()) out += "\n";
      out += "[" + section + "]\n";
      open = section;
    }
    out += setting.key.substr(dot + 1) + " = " + setting.value + "  # " +
           printable_line(setting.source, 400) + "\n";
  }
  return out;
}

}  // namespace berth::catalog
