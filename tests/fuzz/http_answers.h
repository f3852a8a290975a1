#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"

namespace berth::fuzz {

// The answers that a client was sent, as he has to understand them.
class HttpAnswers {
 public:
  // `heads`: he asked for heads alone, so that a length may be of a body that does not follow.
  // `cut`: the last one may end anywhere, as the connection did.
  HttpAnswers(std::string_view sent, bool heads, bool cut)
      : sent_(sent), heads_(heads), cut_(cut) {}

  bool valid() {
    std::set<std::size_t> seen;
    std::vector<std::size_t> starts = {0};
    while (!starts.empty()) {
      const std::size_t at = starts.back();
      starts.pop_back();
      if (at == sent_.size()) return true;
      if (seen.insert(at).second && one(at, starts)) return true;
    }
    return false;
  }

 private:
  struct Head {
    int status = 0;
    std::size_t end = 0;
    std::optional<std::size_t> length{};
    bool chunked = false;
    bool last = false;
  };

  // Adds where the next one may begin; or returns that this is the last, and well.
  bool one(std::size_t at, std::vector<std::size_t>& next) {
    const std::optional<Head> head = read_head(at);
    if (!head) return cut_ && prefix_of_head(at);
    if (head->status == 100) {
      next.push_back(head->end);
      return false;
    }
    if (head->status == 204) return go_on(*head, head->end, next);
    if (heads_ && go_on(*head, head->end, next)) return true;
    if (head->chunked) {
      const std::optional<std::size_t> end = chunks_end(head->end);
      return end ? go_on(*head, *end, next) : cut_ && !malformed_;
    }
    if (!head->length) return head->last;  // it ends with the connection
    if (sent_.size() - head->end < *head->length) return cut_;
    return go_on(*head, head->end + *head->length, next);
  }
  // Behind one that says it is the last there is nothing.
  bool go_on(const Head& head, std::size_t end, std::vector<std::size_t>& next) const {
    if (head.last) return end == sent_.size();
    next.push_back(end);
    return false;
  }

  // A line without its CRLF, from `at` on, which goes behind it.
  std::optional<std::string_view> line(std::size_t& at) const {
    const std::size_t end = sent_.find("\r\n", at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = sent_.substr(at, end - at);
    at = end + 2;
    return text;
  }
  static bool printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  }

  [[nodiscard]] std::optional<Head> read_head(std::size_t at) const {
    static const std::set<std::string_view> kKnown = {"100", "200", "204", "400", "401", "403",
                                                      "404", "405", "408", "413", "415", "431"};
    const std::optional<std::string_view> first = line(at);
    if (!first || !first->starts_with("HTTP/1.1 ") || !printable(*first)) return std::nullopt;
    const std::string_view code = first->substr(9, 3);
    if (!kKnown.contains(code) || first->substr(12, 1) != " ") return std::nullopt;
    Head head;
    head.status = std::stoi(std::string(code));
    for (;;) {
      const std::optional<std::string_view> field = line(at);
      if (!field) return std::nullopt;
      if (field->empty()) break;
      const std::size_t colon = field->find(": ");
      if (colon == 0 || colon == std::string_view::npos || !printable(*field)) return std::nullopt;
      const std::string name = lowered(field->substr(0, colon));
      const std::string_view value = field->substr(colon + 2);
      if (name == "connection") head.last = value == "close";
      if (name == "content-length") {
        const bool number = !value.empty() && value.size() < 10 &&
                            value.find_first_not_of("0123456789") == std::string_view::npos;
        if (head.length || !number) return std::nullopt;
        head.length = std::stoul(std::string(value));
      }
      if (name == "transfer-encoding") {
        if (head.chunked || value != "chunked") return std::nullopt;
        head.chunked = true;
      }
    }
    if (head.chunked && head.length) return std::nullopt;
    head.end = at;
    return head;
  }
  // Whether it is one whose end is missing, and nothing worse.
  [[nodiscard]] bool prefix_of_head(std::size_t at) const {
    constexpr std::string_view kStart = "HTTP/1.1 ";
    const std::string_view rest = sent_.substr(at);
    return rest.substr(0, kStart.size()) == kStart.substr(0, rest.size()) &&
           rest.find("\r\n\r\n") == std::string_view::npos;
  }

  std::optional<std::size_t> chunks_end(std::size_t at) {
    malformed_ = false;
    for (;;) {
      const std::optional<std::string_view> size = line(at);
      if (!size) return std::nullopt;
      malformed_ = size->empty() || size->size() > 8 ||
                   size->find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos;
      if (malformed_) return std::nullopt;
      const std::size_t bytes = std::stoul(std::string(*size), nullptr, 16);
      if (sent_.size() - at < bytes + 2) return std::nullopt;
      malformed_ = sent_.substr(at + bytes, 2) != "\r\n";
      if (malformed_) return std::nullopt;
      at += bytes + 2;
      if (bytes == 0) return at;
    }
  }

  const std::string_view sent_;
  const bool heads_;
  const bool cut_;
  bool malformed_ = false;
};

}  // namespace berth::fuzz
