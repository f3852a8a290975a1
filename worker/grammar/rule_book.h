#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/result.h"
#include "worker/grammar/gbnf_model.h"

namespace berth::worker {

// Collects the rules of a grammar that is being made. Owns them; one thread; lives for one
// conversion. It never fails where a rule is added: passing a bound shows in status().
class RuleBook {
 public:
  static constexpr std::size_t kRules = 20'000;
  static constexpr std::size_t kBytes = GbnfBounds::kConverterBytes;
  // A larger maximum is taken as none: no answer is that long. A larger minimum is an error of the
  // caller.
  static constexpr std::uint64_t kLargestCount = 1'000'000;

  // A new name of the form r<number>-<hint>, with what a name may have of the hint.
  std::string reserve(std::string_view hint);
  void define(std::string name, std::string body);
  // The name of a rule with that body; a new one only where there is none yet.
  std::string share(std::string_view hint, const std::string& body);

  // `item` at least `least` and at most `most` times (no maximum where there is none). `item` is
  // one symbol of GBNF (a name, class, literal or group) that cannot be empty; least <= most, least
  // at most kLargestCount. Counts above `written_out` are built from blocks, so that the grammar
  // grows with their root only.
  std::string repeat(const std::string& item, std::uint64_t least,
                     std::optional<std::uint64_t> most, std::uint64_t written_out = 128);

  // A rule of json_rules.cc and what it needs: "json-value".
  std::string json(std::string_view name);

  // kInvalidArgument once a bound is passed.
  [[nodiscard]] Status status() const;
  // The rules as text, `root` first.
  [[nodiscard]] std::string text() const;

 private:
  std::string exactly(const std::string& item, std::uint64_t count, std::uint64_t written_out);
  std::string up_to(const std::string& item, std::uint64_t count, std::uint64_t written_out);

  std::vector<std::pair<std::string, std::string>> rules_;
  std::unordered_map<std::string, std::string> by_body_;
  std::unordered_set<std::string> json_rules_;
  std::size_t bytes_ = 0;
  std::size_t names_ = 0;
};

}  // namespace berth::worker
