// Compares docs/events.md with the catalogue of events, or writes it anew.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/event.h"

namespace {

constexpr std::string_view kIntroduction =
    R"(# Events

Every change of state is one event with a stable name. `berthd` writes them to its standard output
(logfmt, or JSON lines with `--log-format json`) or, under systemd, to the journal; `berth events -f`
shows them live.

    berth events -f
    journalctl -u berthd BERTH_EVENT=load.failed
    journalctl -u berthd BERTH_MODEL=demo -o json

In the journal the field `model` is `BERTH_MODEL`, and so on. A JSON line has `time`, `level`, `event`,
`sequence`, and the event's fields beside them. `sequence` counts within one state directory. Events of
level debug are not in the log: they are shown, and kept only in memory, where the last 4096 events
are. No event carries the text of a prompt or an answer.

This page is made from `common/events.def`.
)";

std::string section_of(std::string_view name) {
  return std::string(name.substr(0, name.find('.')));
}

std::string row(const berth::EventInfo& info) {
  std::string out =
      "| `" + std::string(info.name) + "` | " + std::string(berth::level_name(info.level)) + " | ";
  bool first = true;
  for (const auto& [field, type] : info.fields) {
    if (!first) out += ", ";
    first = false;
    out += "`" + std::string(field) + "` " + std::string(type);
  }
  return out + " | " + std::string(info.doc) + " |\n";
}

std::string page() {
  std::vector<std::pair<std::string, std::string>> sections;  // name, rows
  for (const berth::EventInfo& info : berth::event_catalogue()) {
    const std::string name = section_of(info.name);
    auto section = std::find_if(sections.begin(), sections.end(),
                                [&](const auto& known) { return known.first == name; });
    if (section == sections.end()) section = sections.insert(section, {name, ""});
    section->second += row(info);
  }
  std::string out(kIntroduction);
  for (const auto& [name, rows] : sections) {
    out.append("\n## ").append(name);
    out.append("\n\n| event | level | fields | meaning |\n|---|---|---|---|\n").append(rows);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const bool update = argc == 3 && std::strcmp(argv[2], "--update") == 0;
  if (argc != 2 && !update) {
    std::fprintf(stderr, "usage: events_doc docs/events.md [--update]\n");
    return 2;
  }
  const std::string path = argv[1];
  if (update) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << page();
    out.close();
    if (out) return 0;
    std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
    return 1;
  }
  std::ifstream in(path, std::ios::binary);
  const std::string there(std::istreambuf_iterator<char>(in), {});
  if (there == page()) return 0;
  std::fprintf(stderr,
               "%s is not what common/events.def says. Write it anew with:\n  %s %s --update\n",
               path.c_str(), argv[0], path.c_str());
  return 1;
}
