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

  // Ends once it has marked one more than kMaxControlTexts: marks are longer than most texts, and
  // make what is full of them many times as large.
  void mark(Json& value) {
    if (too_many()) return;
    if (value.is_string()) {
      mark(value.get_ref<std::string&>());
    } else if (value.is_object()) {
      mark_object(value);
    } else if (value.is_array()) {
      for (auto& element : value) mark(element);
    }
  }
  [[nodiscard]] bool too_many() const { return count_ > kMaxControlTexts; }

 private:
  void mark(std::string& text) {
    count_ += texts_.mark(text, marks_, kMaxControlTexts + 1 - count_);
  }
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
      mark(name);
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
    if (marker.too_many()) {
      return invalid_argument("chat.messages_json",
                              "The messages have more than " + std::to_string(kMaxControlTexts) +
                                  " texts of control tokens; send them as a prompt or as tokens.");
    }
  }
  return marks;
}

}  // namespace berth::worker
