#include "supervisor/cli/chat/line_source.h"

#include <string_view>
#include <utility>

#include "common/text.h"

namespace berth::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr char kFirstPrompt[] = ">>> ";
constexpr char kNextPrompt[] = "... ";

}  // namespace

Line MessageReader::next() {
  Line line = source_.read(kFirstPrompt);
  if (line.kind != Line::Kind::kText) return line;
  std::string typed = line.text;
  if (typed.starts_with(kQuotes)) return quoted(std::move(typed));

  std::string message = typed;
  while (message.ends_with('\\') && message.size() < kMostBytes) {
    line = source_.read(kNextPrompt);
    if (line.kind != Line::Kind::kText) return line;
    typed += "\n" + line.text;
    message.back() = '\n';
    message += line.text;
  }
  source_.remember(typed);
  message.resize(utf8_prefix(message, kMostBytes));
  return {Line::Kind::kText, std::move(message)};
}

Line MessageReader::quoted(std::string first) {
  std::string typed = std::move(first);
  // The closing quotes end a line, and are not the opening ones.
  const auto closed = [&typed] {
    return typed.size() >= 2 * kQuotes.size() && typed.ends_with(kQuotes);
  };
  while (!closed() && typed.size() < kMostBytes) {
    Line line = source_.read(kNextPrompt);
    if (line.kind != Line::Kind::kText) return line;
    typed += "\n" + line.text;
  }
  source_.remember(typed);
  std::string_view message(typed);
  message.remove_prefix(kQuotes.size());
  if (message.ends_with(kQuotes)) message.remove_suffix(kQuotes.size());
  // Quotes on lines of their own do not make the message begin or end with an empty line.
  if (message.starts_with('\n')) message.remove_prefix(1);
  if (message.ends_with('\n')) message.remove_suffix(1);
  return {Line::Kind::kText, std::string(message.substr(0, utf8_prefix(message, kMostBytes)))};
}

}  // namespace berth::cli
