#include "supervisor/query_arguments.h"

#include <algorithm>
#include <boost/url/parse_query.hpp>
#include <charconv>
#include <utility>

#include "common/text.h"

namespace berth {
namespace {

Error wrong(const std::string& name, std::string message) {
  ErrorExtras extras;
  extras.param = name;
  return {Reason::kInvalidArgument, std::move(message), std::move(extras)};
}

}  // namespace

Result<QueryArguments> QueryArguments::parse(std::string_view query,
                                             const std::vector<std::string_view>& known) {
  const auto parsed = boost::urls::parse_query(query);
  if (!parsed) return fail(wrong("query", "The part behind the ? of the URL is malformed."));
  QueryArguments arguments;
  if (query.empty()) return arguments;
  boost::urls::encoding_opts form;
  form.space_as_plus = true;
  for (const auto& param : *parsed) {
    const std::string name = param.key.decode(form);
    if (std::ranges::find(known, name) == known.end()) {
      std::string message = "There is no argument " + printable_line(name, 64) + " here";
      for (const std::string_view one : known) {
        message += (one == known.front() ? "; there are: " : ", ") + std::string(one);
      }
      return fail(wrong(printable_line(name, 64), message + '.'));
    }
    if (!arguments.values_.emplace(name, param.value.decode(form)).second) {
      return fail(wrong(name, "The argument " + name + " stands there twice."));
    }
  }
  return arguments;
}

std::string QueryArguments::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

Result<std::optional<std::uint64_t>> QueryArguments::number(const std::string& name,
                                                            std::uint64_t most,
                                                            std::uint64_t least) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::optional<std::uint64_t>();
  const std::string& digits = found->second;
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size() || value < least ||
      value > most) {
    return fail(wrong(name, name + " has to be a whole number from " + std::to_string(least) +
                                " to " + std::to_string(most) + ", not " +
                                printable_line(digits, 64) + "."));
  }
  return std::optional<std::uint64_t>(value);
}

Result<bool> QueryArguments::truth(const std::string& name, bool otherwise) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return otherwise;
  const std::string& value = found->second;
  if (value.empty() || value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return fail(
      wrong(name, name + " has to be 1, true, 0 or false, not " + printable_line(value, 64) + "."));
}

}  // namespace berth
