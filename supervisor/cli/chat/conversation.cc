#include "supervisor/cli/chat/conversation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <utility>

#include "common/errno_text.h"
#include "common/fd.h"
#include "common/proto_json/json_writer.h"
#include "supervisor/cli/environment.h"

namespace berth::cli {
namespace {

// The key that tells a conversation from any other JSON file; its value is the format's version.
constexpr std::string_view kMark = "berth_chat";
constexpr int kVersion = 1;

void write_message(JsonWriter& json, std::string_view role, std::string_view content,
                   bool interrupted) {
  json.begin_object();
  json.member("role", role);
  json.member("content", content);
  if (interrupted) {
    json.key("interrupted");
    json.truth(true);
  }
  json.end_object();
}

tl::unexpected<Error> bad_file(const std::string& path, const std::string& problem) {
  return fail(Reason::kInvalidArgument, path + " is not a saved conversation: " + problem);
}

Result<ChatMessage> parse_message(const std::string& path, const boost::json::value& value,
                                  std::size_t number) {
  const std::string where = "message " + std::to_string(number);
  const auto* object = value.if_object();
  if (object == nullptr) return bad_file(path, where + " is no object");
  const auto* role = object->if_contains("role");
  const auto* content = object->if_contains("content");
  if (role == nullptr || !role->is_string()) return bad_file(path, where + " has no role");
  if (content == nullptr || !content->is_string()) {
    return bad_file(path, where + " has no content that is a text");
  }
  ChatMessage message;
  message.role = std::string_view(role->get_string());
  message.content = std::string_view(content->get_string());
  if (message.role != "system" && message.role != "user" && message.role != "assistant") {
    return bad_file(path, where + " has a role other than system, user and assistant");
  }
  const auto* interrupted = object->if_contains("interrupted");
  message.interrupted = interrupted != nullptr && interrupted->is_bool() && interrupted->get_bool();
  return message;
}

Result<Conversation> parse(const std::string& path, const std::string& text) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(text, error);
  if (error) return bad_file(path, error.message());
  const auto* object = value.if_object();
  const auto* mark = object != nullptr ? object->if_contains(kMark) : nullptr;
  if (mark == nullptr) return bad_file(path, "it has no key " + std::string(kMark));
  if (!mark->is_int64() || mark->get_int64() != kVersion) {
    return bad_file(path, "its version is not " + std::to_string(kVersion));
  }
  const auto* messages = object->if_contains("messages");
  if (messages == nullptr || !messages->is_array()) return bad_file(path, "it has no messages");
  Conversation conversation;
  std::size_t number = 0;
  for (const boost::json::value& item : messages->get_array()) {
    auto message = parse_message(path, item, ++number);
    if (!message) return tl::unexpected(message.error());
    if (message->role == "system") {
      if (number != 1) return bad_file(path, "a system message that is not the first");
      conversation.set_system(std::move(message->content));
    } else if (auto added = conversation.add(std::move(*message)); !added) {
      return tl::unexpected(added.error());
    }
  }
  return conversation;
}

}  // namespace

Status Conversation::add(ChatMessage message) {
  std::size_t bytes = system_.size() + message.content.size();
  for (const ChatMessage& known : messages_) bytes += known.content.size();
  if (bytes > kMostBytes) {
    return fail(Reason::kBodyTooLarge, "the conversation is too long (64 MiB): /clear begins anew");
  }
  messages_.push_back(std::move(message));
  return {};
}

std::string Conversation::messages_json() const {
  JsonWriter json(JsonWriter::Layout::kLine);
  json.begin_array();
  if (!system_.empty()) write_message(json, "system", system_, false);
  for (const ChatMessage& message : messages_) {
    write_message(json, message.role, message.content, false);
  }
  json.end_array();
  return json.str();
}

Status Conversation::save(const std::string& path, std::string_view model) const {
  if (path.empty()) return fail(Reason::kInvalidArgument, "no file was named");
  if (::access(path.c_str(), F_OK) == 0) {
    if (const auto known = load(path); !known) {
      return fail(Reason::kConflict, path +
                                         " is there already and is no saved conversation: it "
                                         "was not replaced");
    }
  }
  JsonWriter json(JsonWriter::Layout::kIndented);
  json.begin_object();
  json.key(kMark);
  json.integer(kVersion);
  json.member("model", model);
  json.key("messages");
  json.begin_array();
  if (!system_.empty()) write_message(json, "system", system_, false);
  for (const ChatMessage& message : messages_) {
    write_message(json, message.role, message.content, message.interrupted);
  }
  json.end_array();
  json.end_object();
  const std::string text = json.str() + "\n";

  std::string temporary = path + ".XXXXXX";
  UniqueFd file(::mkstemp(temporary.data()));  // mode 0600
  if (!file) return fail(Reason::kInternal, "cannot write " + path + ": " + errno_text(errno));
  FdOutput output(file.get());
  output.write(text);
  const auto failed = output.failed();
  if (failed || ::fsync(file.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string problem = failed ? *failed : errno_text(errno);
    ::unlink(temporary.c_str());
    return fail(Reason::kInternal, "cannot write " + path + ": " + problem);
  }
  return {};
}

Result<Conversation> Conversation::load(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return fail(Reason::kNotFound, "cannot open " + path + ": " + errno_text(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return bad_file(path, "it is no regular file");
  }
  const ReadAll read = read_all(file.get(), 2 * kMostBytes);
  if (!read.error.empty()) return bad_file(path, read.error);
  return parse(path, read.text);
}

}  // namespace berth::cli
