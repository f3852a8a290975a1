#include "supervisor/gateway/model_name.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

namespace berth::gateway {
namespace {

constexpr std::string_view kModel = "model";
constexpr std::string_view kError = "error";
constexpr std::string_view kUsage = "usage";
constexpr std::size_t kLongestUsage = 1024;
// "\u006d\u006f\u0064\u0065\u006c"
constexpr std::size_t kLongestKey = 6 * kModel.size();
constexpr std::string_view kData = "data:";
constexpr std::string_view kDone = "[DONE]";

bool blank(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

bool means(const std::string& key, std::string_view name) {
  if (key.find('\\') == std::string::npos) return key == name;
  boost::system::error_code failed;
  const boost::json::value read = boost::json::parse('"' + key + '"', failed);
  if (failed || !read.is_string()) return false;
  const boost::json::string& text = read.get_string();
  return std::string_view(text.data(), text.size()) == name;
}

// 0: not said, or no such number.
std::uint32_t count_in(const boost::json::value& value, const char* key) {
  const boost::json::object* object = value.if_object();
  const boost::json::value* number = object == nullptr ? nullptr : object->if_contains(key);
  if (number == nullptr) return 0;
  boost::system::error_code failed;
  const auto read = number->to_number<std::uint32_t>(failed);
  return failed ? 0 : read;
}

}  // namespace

std::size_t ModelScanner::skippable(std::string_view text) const {
  if (!in_string_ || escaped_ || role_ != Role::kOther || in_usage_) return 0;
  std::size_t size = 0;
  while (size < text.size() && text[size] != '"' && text[size] != '\\') ++size;
  return size;
}

ModelScanner::Byte ModelScanner::take_in_string(char byte) {
  const Role role = role_;
  if (escaped_) {
    escaped_ = false;
  } else if (byte == '\\') {
    escaped_ = true;
  } else if (byte == '"') {
    in_string_ = false;
    if (role == Role::kKey) end_key();
    return role == Role::kModel ? Byte::kDrop : Byte::kKeep;
  }
  // One byte more than any of ours, so that a longer key is none of them.
  if (role == Role::kKey && key_.size() <= kLongestKey) key_ += byte;
  return role == Role::kModel ? Byte::kDrop : Byte::kKeep;
}

void ModelScanner::end_key() {
  const bool may_be_ours = key_.size() <= kLongestKey;
  key_is_model_ = may_be_ours && means(key_, kModel);
  key_is_error_ = may_be_ours && means(key_, kError);
  key_is_usage_ = may_be_ours && means(key_, kUsage);
}

ModelScanner::Byte ModelScanner::open_string() {
  in_string_ = true;
  role_ = Role::kOther;
  if (depth_ != 1 || !in_object_) return Byte::kKeep;
  if (expects_key_) {
    role_ = Role::kKey;
    key_.clear();
  } else if (expects_value_ && key_is_model_) {
    role_ = Role::kModel;
    expects_value_ = false;
    return Byte::kName;
  }
  return Byte::kKeep;
}

void ModelScanner::open(char byte) {
  if (depth_ == 0) in_object_ = byte == '{';
  if (depth_ == 1 && in_object_ && expects_value_ && key_is_usage_ && byte == '{') {
    in_usage_ = true;
    usage_.clear();
  }
  expects_key_ = depth_ == 0;
  expects_value_ = false;
  ++depth_;
}

void ModelScanner::close() {
  if (depth_ > 0) --depth_;
  if (depth_ != 1 || !std::exchange(in_usage_, false)) return;
  usage_ += '}';
  if (usage_.size() > kLongestUsage) usage_.clear();
}

ModelScanner::Byte ModelScanner::take(char byte) {
  const Byte kind = in_string_ ? take_in_string(byte) : take_outside(byte);
  if (in_usage_ && usage_.size() <= kLongestUsage) usage_ += byte;
  return kind;
}

ModelScanner::Byte ModelScanner::take_outside(char byte) {
  const bool outermost = depth_ == 1 && in_object_;
  if (outermost && expects_value_ && key_is_error_ && !blank(byte)) {
    saw_error_ = saw_error_ || byte != 'n';  // null
  }
  switch (byte) {
    case '"':
      return open_string();
    case '{':
    case '[':
      open(byte);
      return Byte::kKeep;
    case '}':
    case ']':
      close();
      return Byte::kKeep;
    case ':':
      if (outermost) {
        expects_key_ = false;
        expects_value_ = true;
      }
      return Byte::kKeep;
    case ',':
      if (outermost) {
        expects_key_ = true;
        expects_value_ = false;
      }
      return Byte::kKeep;
    default:
      expects_value_ = expects_value_ && blank(byte);
      return Byte::kKeep;
  }
}

std::vector<std::string> cut_at_model(std::string_view body) {
  ModelScanner scanner;
  std::vector<std::string> pieces(1);
  while (!body.empty()) {
    const std::size_t skipped = scanner.skippable(body);
    pieces.back().append(body.substr(0, skipped));
    body.remove_prefix(skipped);
    if (body.empty()) break;
    switch (scanner.take(body.front())) {
      case ModelScanner::Byte::kKeep:
        pieces.back() += body.front();
        break;
      case ModelScanner::Byte::kName:
        pieces.back().shrink_to_fit();
        pieces.emplace_back();
        break;
      case ModelScanner::Byte::kDrop:
        break;
    }
    body.remove_prefix(1);
  }
  pieces.back().shrink_to_fit();  // it waits, and may have twice the room that it needs
  return pieces;
}

AnswerKind answer_kind(std::string_view content_type) {
  if (content_type.starts_with("text/event-stream")) return AnswerKind::kEvents;
  if (content_type.starts_with("application/json")) return AnswerKind::kJson;
  return AnswerKind::kOther;
}

AnswerNames::AnswerNames(AnswerKind kind, const std::string& name)
    : kind_(kind),
      quoted_name_(boost::json::serialize(boost::json::string_view(name.data(), name.size()))) {}

std::string AnswerNames::rename(std::string_view piece) {
  std::string out;
  out.reserve(piece.size() + quoted_name_.size());
  if (kind_ == AnswerKind::kOther) return std::string(piece);
  if (kind_ == AnswerKind::kJson) {
    rename_json(piece, out);
    return out;
  }
  while (!piece.empty()) {
    if (place_ == Place::kData) {
      const std::string_view line = piece.substr(0, piece.find_first_of("\r\n"));
      rename_json(line, out);
      piece.remove_prefix(line.size());
      if (piece.empty()) break;
    }
    const char byte = piece.front();
    piece.remove_prefix(1);
    out += byte;
    const bool ends_line = byte == '\r' || byte == '\n';
    if (ends_line && !(byte == '\n' && after_return_)) {
      complete_ = complete_ || (done_ && line_empty_);
      end_line();
    }
    after_return_ = byte == '\r';
    if (!ends_line) line_empty_ = false;
    if (!ends_line && place_ == Place::kField) {
      place_ = byte == kData[matched_] ? Place::kField : Place::kRest;
      if (++matched_ == kData.size() && place_ == Place::kField) place_ = Place::kData;
    }
  }
  return out;
}

bool AnswerNames::event_stream_ended() const {
  return done_ || error_ || (place_ == Place::kData && data_ == kDone);
}

void AnswerNames::rename_json(std::string_view piece, std::string& out) {
  while (!piece.empty()) {
    const std::size_t skipped = scanner_.skippable(piece);
    out += piece.substr(0, skipped);
    piece.remove_prefix(skipped);
    if (piece.empty()) return;
    const char byte = piece.front();
    piece.remove_prefix(1);
    if (data_.size() <= kDone.size() && byte != ' ') data_ += byte;
    switch (scanner_.take(byte)) {
      case ModelScanner::Byte::kKeep:
        out += byte;
        break;
      case ModelScanner::Byte::kName:
        out += quoted_name_;
        break;
      case ModelScanner::Byte::kDrop:
        break;
    }
  }
}

core::Usage AnswerNames::usage() const {
  core::Usage usage;
  boost::system::error_code failed;
  const std::string& text = scanner_.usage().empty() ? usage_ : scanner_.usage();
  const boost::json::value said = boost::json::parse(text, failed);
  if (failed || !said.is_object()) return usage;
  usage.prompt_tokens = count_in(said, "prompt_tokens");
  usage.completion_tokens = count_in(said, "completion_tokens");
  if (const auto* details = said.get_object().if_contains("prompt_tokens_details")) {
    usage.cached_tokens = count_in(*details, "cached_tokens");
  }
  return usage;
}

void AnswerNames::end_line() {
  if (place_ == Place::kData && !data_.empty()) {
    done_ = data_ == kDone;
    error_ = scanner_.saw_error();
    if (!scanner_.usage().empty()) usage_ = scanner_.usage();
  }
  scanner_ = ModelScanner();
  data_.clear();
  line_empty_ = true;
  matched_ = 0;
  place_ = Place::kField;
}

}  // namespace berth::gateway
