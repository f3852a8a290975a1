#include "tests/bench/answer_reader.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace berth::bench {
namespace {

constexpr std::size_t kMostHead = 64U << 10;

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(x) == lower(y);
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool read_size(std::string_view text, int base, std::size_t& out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return code == std::errc{} && end != text.data();
}

}  // namespace

void AnswerReader::reset() {
  state_ = State::kHead;
  line_.clear();
  left_ = 0;
  status_ = 0;
  closes_ = false;
}

Status AnswerReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (state_ == State::kComplete) {
      return fail(Reason::kInternal,
                  "bytes behind the answer: " + std::string(bytes.substr(0, 80)));
    }
    if (state_ == State::kBody || state_ == State::kChunk || state_ == State::kUntilEnd) {
      if (Status taken = take_body(bytes); !taken) return taken;
      continue;
    }
    const std::size_t line_end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, line_end);
    line_.append(part);
    if (line_.size() > kMostHead) return fail(Reason::kInternal, "a line of more than 64 KiB");
    if (line_end == std::string_view::npos) return {};
    bytes.remove_prefix(line_end + 1);
    if (Status read =
            state_ == State::kHead ? read_head(trimmed(line_)) : read_line(trimmed(line_));
        !read) {
      return read;
    }
    line_.clear();
  }
  return {};
}

Status AnswerReader::read_head(std::string_view line) {
  if (status_ == 0) {
    std::size_t status = 0;
    if (!line.starts_with("HTTP/1.1 ") || !read_size(line.substr(9, 3), 10, status)) {
      return fail(Reason::kInternal, "no HTTP/1.1 answer: " + std::string(line.substr(0, 80)));
    }
    status_ = static_cast<int>(status);
    state_ = State::kHead;
    left_ = std::string::npos;  // until the end, unless a header says how long it is
    return {};
  }
  if (line.empty()) {
    if (left_ == std::string::npos) {
      state_ = State::kUntilEnd;
      closes_ = true;
    } else if (left_ == std::string::npos - 1) {
      state_ = State::kChunkLine;
    } else {
      state_ = left_ == 0 ? State::kComplete : State::kBody;
    }
    return {};
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return fail(Reason::kInternal, "a header without a colon");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (same_name(name, "content-length") && !read_size(value, 10, left_)) {
    return fail(Reason::kInternal, "no Content-Length: " + std::string(value));
  }
  if (same_name(name, "transfer-encoding") && same_name(value, "chunked")) {
    left_ = std::string::npos - 1;
  }
  if (same_name(name, "connection") && same_name(value, "close")) closes_ = true;
  return {};
}

Status AnswerReader::read_line(std::string_view line) {
  if (state_ == State::kTrailer) {
    if (line.empty()) state_ = State::kComplete;
    return {};
  }
  if (state_ == State::kChunkEnd) {
    if (!line.empty()) return fail(Reason::kInternal, "a chunk is longer than its size");
    state_ = State::kChunkLine;
    return {};
  }
  if (!read_size(line, 16, left_)) {
    return fail(Reason::kInternal, "no size of a chunk: " + std::string(line.substr(0, 80)));
  }
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return {};
}

Status AnswerReader::take_body(std::string_view& bytes) {
  const bool bounded = state_ != State::kUntilEnd;
  const std::string_view part = bytes.substr(0, bounded ? left_ : bytes.size());
  bytes.remove_prefix(part.size());
  if (bounded) {
    left_ -= part.size();
    if (left_ == 0) state_ = state_ == State::kBody ? State::kComplete : State::kChunkEnd;
  }
  return on_body_(part);
}

Status AnswerReader::end() {
  if (state_ == State::kUntilEnd) state_ = State::kComplete;
  if (state_ == State::kComplete) return {};
  return fail(Reason::kInternal, "the connection ended within the answer");
}

}  // namespace berth::bench
