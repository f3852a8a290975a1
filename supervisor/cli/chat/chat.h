#pragma once

#include "supervisor/cli/chat/conversation.h"
#include "supervisor/cli/chat/line_source.h"
#include "supervisor/cli/context.h"
#include "supervisor/cli/options.h"

namespace berth::cli {

// `berth chat`: one question, or a conversation on the terminal.
ExitCode run_chat(Context& context, const ChatOptions& options);

// A conversation with a person who types. One thread; lives as long as the conversation.
class Chat {
 public:
  Chat(Context& context, const ChatOptions& options, LineSource& lines);

  // Until the person leaves. kOk; errors of single answers are told and end nothing.
  ExitCode run();

 private:
  void say(std::string_view text);
  void note(std::string_view text);

  void send(std::string text);
  // Whether the chat goes on.
  bool command(std::string_view line);
  void show_help();
  void set_system(std::string_view text);
  void set_option(std::string_view text);
  void show_stats();
  void save(std::string_view file);
  void load(std::string_view file);
  [[nodiscard]] std::string expanded(std::string_view file) const;

  Context& context_;
  std::string model_;
  SamplingOptions sampling_;
  bool verbose_;
  LineSource& lines_;
  Conversation conversation_;
  bool leaving_ = false;

  // For /stats.
  std::optional<v1::Done> last_;
  std::uint64_t answers_ = 0;
  std::uint64_t tokens_read_ = 0;
  std::uint64_t tokens_written_ = 0;
};

}  // namespace berth::cli
