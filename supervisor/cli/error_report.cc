#include "supervisor/cli/error_report.h"

#include <algorithm>
#include <chrono>

#include "common/text.h"
#include "common/units.h"
#include "supervisor/cli/format/table.h"
#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLineBytes = 4096;
constexpr int kLogLines = 20;

std::string line(std::string_view text) {
  return printable_line(text, kLineBytes);
}

void add_failure(std::vector<std::string>& hints, const v1::ErrorDetail& detail, WallTime now) {
  const v1::Failure& failure = detail.failure();
  std::string what = "failure: " + line(failure.class_());
  if (!failure.signal().empty()) {
    what += ", ended by " + line(failure.signal());
  } else if (failure.has_exit_code()) {
    what += ", exit " + std::to_string(failure.exit_code());
  }
  if (failure.since_unix_ms() > 0) what += ", " + ago(failure.since_unix_ms(), now);
  hints.push_back(what);
  const bool told = detail.message().find(failure.reason()) != std::string::npos;
  if (!told) hints.push_back("reason: " + line(failure.reason()));
  if (!failure.id().empty()) hints.push_back("record: " + line(failure.id()));
  if (failure.command_size() > 0) {
    hints.push_back("command: " +
                    line(shell_line({failure.command().begin(), failure.command().end()})));
  }
  if (failure.log_tail_size() > 0) {
    hints.emplace_back("last lines of its log:");
    const int first = std::max(0, failure.log_tail_size() - kLogLines);
    for (int i = first; i < failure.log_tail_size(); ++i) {
      hints.push_back("  | " + line(failure.log_tail(i)));
    }
  }
}

// Names that the message does not tell already.
void add_suggestions(std::vector<std::string>& hints, const v1::ErrorDetail& detail) {
  std::vector<std::string> names;
  for (const std::string& name : detail.suggestions()) {
    if (detail.message().find(name) == std::string::npos) names.push_back(line(name));
  }
  if (!names.empty()) hints.push_back("nearest names: " + join_names(names));
}

}  // namespace

std::string ago(std::int64_t unix_ms, WallTime now) {
  const WallTime then{std::chrono::milliseconds(unix_ms)};
  const auto age = std::chrono::floor<std::chrono::seconds>(now - then);
  if (age < std::chrono::seconds(1)) return "just now";
  return format_seconds(age) + " ago";
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out.push_back(' ');
    if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) {
      out += word;
      continue;
    }
    out.push_back('\'');
    for (const char c : word) {
      if (c == '\'') {
        out += "'\\''";
      } else {
        out.push_back(c);
      }
    }
    out.push_back('\'');
  }
  return out;
}

Report report_refusal(const v1::ErrorDetail& detail, std::string_view model, WallTime now) {
  Report report;
  report.message = line(detail.message());
  auto& hints = report.hints;
  if (!detail.param().empty() && detail.message().find(detail.param()) == std::string::npos) {
    hints.push_back("field: " + line(detail.param()));
  }
  add_suggestions(hints, detail);
  const std::string needed = std::to_string(detail.needed());
  const std::string limit = std::to_string(detail.limit());
  const bool told = detail.message().find(needed) != std::string::npos &&
                    detail.message().find(limit) != std::string::npos;
  if (detail.has_needed() && detail.has_limit() && !told) {
    hints.push_back("needed: " + needed + ", limit: " + limit);
  }
  if (detail.has_holder()) {
    const v1::Holder& holder = detail.holder();
    std::string text = "held by: " + line(holder.model());
    if (!holder.state().empty()) text += " (" + line(holder.state()) + ")";
    if (holder.since_unix_ms() > 0) text += ", since " + ago(holder.since_unix_ms(), now);
    hints.push_back(text);
  }
  if (detail.has_failure()) add_failure(hints, detail, now);
  if (detail.has_retry_after_seconds()) {
    hints.push_back("a retry may succeed in " +
                    format_duration_human(std::chrono::milliseconds(
                        static_cast<std::int64_t>(detail.retry_after_seconds() * 1000))));
  }
  if (!detail.request_id().empty()) hints.push_back("request: " + line(detail.request_id()));
  const std::string name = line(model);
  if (detail.reason() == "unknown_model") {
    const bool told_where = detail.message().find("berth models") != std::string::npos;
    if (!told_where) hints.emplace_back("'berth models' lists what there is");
  } else if (!detail.failure().instance_id().empty() && !name.empty()) {
    // Without an instance nothing ran that could have written one.
    hints.push_back("'berth why " + name + "' explains it, 'berth logs " + name +
                    "' shows the whole log");
  }
  return report;
}

Report report_unreachable(const Endpoint& endpoint, std::string_view what_happened) {
  Report report;
  report.message = "cannot reach berthd at " + line(endpoint.text) + ": " + line(what_happened);
  auto& hints = report.hints;
  if (!endpoint.note.empty()) hints.push_back(line(endpoint.note));
  hints.emplace_back("is berthd running? try 'systemctl status berthd', or 'berth doctor'");
  if (endpoint.origin == "--endpoint" || endpoint.origin == "BERTH_ENDPOINT") {
    hints.push_back("the endpoint was given by " + endpoint.origin);
  } else {
    hints.push_back("the endpoint is " +
                    (endpoint.origin == "default" ? std::string("the usual one")
                                                  : "that of " + line(endpoint.origin)) +
                    "; for another one use --endpoint or set BERTH_ENDPOINT");
  }
  return report;
}

std::string to_text(const Report& report, bool colours) {
  std::string out = styled("berth:", Style::kBad, colours) + " " + report.message + "\n";
  for (const std::string& hint : report.hints) out += "  " + hint + "\n";
  return out;
}

}  // namespace berth::cli
