#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway {

// Finds the route of a request. Immutable, any thread.
class Router {
 public:
  // Of two patterns that match a path the one that is more exact comes first: words before "{}"
  // before "{...}". No two routes may have the same method and pattern (asserted).
  explicit Router(std::vector<Route> routes);

  struct Match {
    // Null: the path has no route (no `methods`), or none with this method.
    const Route* route = nullptr;
    std::vector<std::string> arguments;  // percent-decoded
    std::string methods;                 // of the path, as Allow lists them: "GET, HEAD, POST"
  };

  // `path` as sent, without the query. HEAD is served by GET's route. Errors: kInvalidArgument
  // where an argument is no percent-encoded UTF-8.
  [[nodiscard]] Result<Match> find(std::string_view method, std::string_view path) const;

 private:
  struct Entry {
    std::vector<std::string> segments;
    Route route;
  };
  std::vector<Entry> entries_;  // the most exact first
};

// Percent-decoded UTF-8 without control characters, else an error that names the path.
Result<std::string> percent_decoded(std::string_view text);

}  // namespace berth::gateway
