#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace berth {

// What stands behind the "?" of a URL, decoded. Every argument has to be known, stand there once
// and be well formed: who asks for what there is not, or mistypes it, is told so.
class QueryArguments {
 public:
  // Errors: kInvalidArgument with `param`.
  static Result<QueryArguments> parse(std::string_view query,
                                      const std::vector<std::string_view>& known);

  // Empty: it is not there.
  [[nodiscard]] std::string text(const std::string& name) const;
  // Errors: kInvalidArgument (no number, below `least` or above `most`). Absent: it is not there.
  [[nodiscard]] Result<std::optional<std::uint64_t>> number(const std::string& name,
                                                            std::uint64_t most,
                                                            std::uint64_t least = 0) const;
  // 0, 1, false or true; an empty one is true. Errors: kInvalidArgument.
  [[nodiscard]] Result<bool> truth(const std::string& name, bool otherwise) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace berth
