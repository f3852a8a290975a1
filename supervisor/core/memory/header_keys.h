#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/gguf/gguf.h"
#include "common/result.h"

namespace berth::core {

// The keys of one architecture in a header, with bounds. Lives shorter than the header.
class HeaderKeys {
 public:
  explicit HeaderKeys(const gguf::Header& header);

  // "llama.block_count"
  [[nodiscard]] std::string full(std::string_view name) const;
  // Ditto for people: printable, in quotes.
  [[nodiscard]] std::string shown(std::string_view name) const;
  // A number of at most `most`; `fallback` where the key is not there. Errors: kInvalidArgument
  // where it is larger, negative, or no number.
  [[nodiscard]] Result<std::uint32_t> number(std::string_view name, std::uint32_t most,
                                             std::uint32_t fallback = 0) const;
  // One number for each layer, be it a list in the file or one number for all. Ditto; also where
  // the list is shorter than `layers`.
  [[nodiscard]] Result<std::vector<std::uint32_t>> per_layer(std::string_view name,
                                                             std::size_t layers, std::uint32_t most,
                                                             std::uint32_t fallback = 0) const;
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool is_list(std::string_view name) const;

 private:
  const gguf::Header& header_;
  std::string prefix_;  // "llama."
};

}  // namespace berth::core
