#include "worker/template/mark_conversation.h"

#include <string>
#include <utility>

namespace berth::worker {
namespace {

bool occurs(const Json& value, const ControlTexts& texts) {
  if (value.is_string()) return texts.occurs_in(value.get_ref<const std::string&>());
  if (value.is_object()) {
    for (const auto& [key, element] : value.items()) {
      if (texts.occurs_in(key) || occurs(element, texts)) return true;
    }
  } else if (value.is_array()) {
    for (const auto& element : value) {
      if (occurs(element, texts)) return true;
    }
  }
  return false;
}

class Marker {
 public:
  Marker(const ControlTexts& texts, const Marks& marks) : texts_(texts), marks_(marks) {}

  void mark(Json& value) {
    if (value.is_string()) {
      count_ += texts_.mark(value.get_ref<std::string&>(), marks_);
    } else if (value.is_object()) {
      mark_object(value);
    } else if (value.is_array()) {
      for (auto& element : value) mark(element);
    }
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  void mark_object(Json& object) {
    bool keys = false;
    for (auto& [key, element] : object.items()) {
      keys = keys || texts_.occurs_in(key);
      mark(element);
    }
    if (!keys) return;
    Json renamed = Json::object();
    for (auto& [key, element] : object.items()) {
      auto name = key;
      count_ += texts_.mark(name, marks_);
      renamed[name] = std::move(element);
    }
    object = std::move(renamed);
  }

  const ControlTexts& texts_;
  const Marks& marks_;
  std::size_t count_ = 0;
};

}  // namespace

Result<Marks> mark_control_texts(Conversation& conversation, const ControlTexts& texts) {
  if (texts.empty()) return Marks();
  bool any = false;
  for (const auto* const value :
       {&conversation.messages, &conversation.tools, &conversation.variables}) {
    any = any || occurs(*value, texts);
  }
  if (!any) return Marks();
  auto marks = Marks::random();
  if (!marks) return marks;
  Marker marker(texts, *marks);
  for (auto* const value : {&conversation.messages, &conversation.tools, &conversation.variables}) {
    marker.mark(*value);
    if (marker.count() > kMaxControlTexts) {
      return invalid_argument("chat.messages_json",
                              "The messages have more than " + std::to_string(kMaxControlTexts) +
                                  " texts of control tokens; send them as a prompt or as tokens.");
    }
  }
  return marks;
}

}  // namespace berth::worker
