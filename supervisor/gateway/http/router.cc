#include "supervisor/gateway/http/router.h"

#include <algorithm>
#include <boost/url/pct_string_view.hpp>
#include <cassert>
#include <optional>
#include <utility>

#include "common/text.h"

namespace berth::gateway {
namespace {

constexpr std::string_view kOne = "{}";
constexpr std::string_view kRest = "{...}";

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  for (std::size_t slash = 0; slash != std::string_view::npos;) {
    slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  }
  return segments;
}

int rank(const std::string& segment) {
  if (segment == kRest) return 2;
  return segment == kOne ? 1 : 0;
}

// What the {} matched, still encoded; nothing where the path is another one.
std::optional<std::vector<std::string_view>> matched(const std::vector<std::string>& pattern,
                                                     std::string_view path) {
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  std::vector<std::string_view> arguments;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == kRest) {
      if (path.empty()) return {};
      arguments.push_back(path);
      return arguments;
    }
    const std::size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    if (pattern[i] == kOne) {
      if (segment.empty()) return {};
      arguments.push_back(segment);
    } else if (segment != pattern[i]) {
      return {};
    }
    const bool last = i + 1 == pattern.size();
    if (last != (slash == std::string_view::npos)) return {};
    if (!last) path.remove_prefix(slash + 1);
  }
  return arguments;
}

void add_method(std::string& methods, std::string_view method) {
  if (!methods.empty()) methods += ", ";
  methods += method;
  if (method == "GET") methods += ", HEAD";
}

}  // namespace

Result<std::string> percent_decoded(std::string_view text) {
  const auto encoded = boost::urls::make_pct_string_view(text);
  std::string made = encoded ? encoded->decode() : std::string();
  const bool good = encoded && !first_invalid_utf8(made) && std::ranges::none_of(made, [](char c) {
                      return static_cast<unsigned char>(c) < ' ' || c == 0x7F;
                    });
  if (!good) {
    return fail(Reason::kInvalidArgument,
                "The path has a part that is no percent-encoded text in UTF-8.");
  }
  return made;
}

Router::Router(std::vector<Route> routes) {
  for (Route& route : routes) {
    std::vector<std::string> segments = split(route.pattern);
    entries_.push_back({std::move(segments), std::move(route)});
  }
  std::ranges::stable_sort(entries_, [](const Entry& a, const Entry& b) {
    return std::ranges::lexicographical_compare(a.segments, b.segments, {}, rank, rank);
  });
  for ([[maybe_unused]] const Entry& entry : entries_) {
    assert(std::ranges::count_if(entries_, [&entry](const Entry& other) {
             return other.segments == entry.segments && other.route.method == entry.route.method;
           }) == 1);
  }
}

Result<Router::Match> Router::find(std::string_view method, std::string_view path) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  Match found;
  for (const Entry& entry : entries_) {
    const auto arguments = matched(entry.segments, path);
    if (!arguments) continue;
    if (entry.route.method != wanted) {
      if (found.methods.find(entry.route.method) == std::string::npos) {
        add_method(found.methods, entry.route.method);
      }
      continue;
    }
    found.route = &entry.route;
    for (const std::string_view argument : *arguments) {
      Result<std::string> decoded = percent_decoded(argument);
      if (!decoded) return fail(decoded.error());
      found.arguments.push_back(*std::move(decoded));
    }
    return found;
  }
  return found;
}

}  // namespace berth::gateway
