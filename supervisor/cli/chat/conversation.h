#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace berth::cli {

struct ChatMessage {
  std::string role;  // user | assistant
  std::string content;
  // The answer was stopped or broke off.
  bool interrupted = false;
};

// A conversation with a model: what is sent with every question. A value.
class Conversation {
 public:
  // Bytes of all texts that a conversation may have.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

  [[nodiscard]] const std::string& system() const { return system_; }
  void set_system(std::string text) { system_ = std::move(text); }  // empty: none

  [[nodiscard]] const std::vector<ChatMessage>& messages() const { return messages_; }
  // Errors: kBodyTooLarge.
  Status add(ChatMessage message);
  // Takes back the last message. There must be one.
  void drop_last() { messages_.pop_back(); }
  void clear() { messages_.clear(); }

  // The `messages` of a request.
  [[nodiscard]] std::string messages_json() const;

  // A file that a person may read and edit. Replaces a file only if that is such a conversation,
  // too; written as a whole or not at all, readable by its owner alone. Errors: kConflict,
  // kInternal with errno's text.
  [[nodiscard]] Status save(const std::string& path, std::string_view model) const;
  // Errors: kNotFound, kInvalidArgument with what is wrong in the file.
  static Result<Conversation> load(const std::string& path);

 private:
  std::string system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace berth::cli
