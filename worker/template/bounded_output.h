#pragma once

#include <cstddef>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <utility>

namespace berth::worker {

// Gathers what a template prints, and throws at the byte that is too many. One thread.
class BoundedOutput final : public std::streambuf {
 public:
  explicit BoundedOutput(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] bool full() const { return full_; }
  std::string take() { return std::move(text_); }

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize size) override {
    const auto count = static_cast<std::size_t>(size);
    check(count);
    text_.append(bytes, count);
    return size;
  }
  int_type overflow(int_type byte) override {
    if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
    check(1);
    text_.push_back(traits_type::to_char_type(byte));
    return byte;
  }

 private:
  void check(std::size_t more) {
    if (more <= limit_ - text_.size()) return;
    full_ = true;
    throw std::length_error("the output is too long");
  }

  std::size_t limit_;
  std::string text_;
  bool full_ = false;
};

}  // namespace berth::worker
