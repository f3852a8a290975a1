#pragma once

#include <cstdint>
#include <string>

namespace berth::cli {

// What a person did at the prompt.
struct Line {
  enum class Kind : std::uint8_t {
    kText,       // `text`, without its newline; a paste may have newlines within
    kInterrupt,  // Ctrl-C
    kEnd,        // Ctrl-D on an empty line, or the end of the input
    kTerminate,  // the program was told to end, or its terminal went away
  };
  Kind kind = Kind::kEnd;
  std::string text;  // well-formed UTF-8
};

// Where the lines of a chat come from. One thread.
class LineSource {
 public:
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  virtual ~LineSource() = default;

  // Shows `prompt` and waits for a line.
  virtual Line read(const std::string& prompt) = 0;
  // Keeps what was typed, so that it can be called back.
  virtual void remember(const std::string& entry) = 0;
};

// Puts together a message of the lines that belong to it: from `"""` to `"""`, and lines that end
// with a backslash. One thread; borrows the source.
class MessageReader {
 public:
  explicit MessageReader(LineSource& source) : source_(source) {}

  // The next message (which it also remembers), or what came instead of it; Ctrl-C drops what was
  // begun. A message has at most kMostBytes; the rest is cut off.
  Line next();

  static constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

 private:
  Line quoted(std::string first);

  LineSource& source_;
};

}  // namespace berth::cli
