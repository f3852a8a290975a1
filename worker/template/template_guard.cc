#include "worker/template/template_guard.h"

#include <array>
#include <utility>

namespace berth::worker {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_run(char c) {
  return is_space(c) || c == ',' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool is_space_control(char c) {
  return c == '-' || c == '~';
}

class Guard {
 public:
  explicit Guard(std::string_view source) : source_(source) { out_.reserve(source.size() + 64); }

  Result<std::string> run();

 private:
  Status comment();
  Status tag(char closer);  // closer: the '}' of "}}" or the '%' of "%}"
  Status tag_character(char c, int& depth);
  void string(char quote);
  Status block(std::string_view content);
  Status check_runs() const;

  [[nodiscard]] bool at(std::string_view text) const {
    return source_.substr(position_).starts_with(text);
  }
  [[nodiscard]] static tl::unexpected<Error> failed(const std::string& what, std::size_t byte) {
    return fail(Reason::kTemplateFailed,
                "The model's chat template " + what + " at byte " + std::to_string(byte) + ".");
  }

  std::string_view source_;
  std::size_t position_ = 0;
  int blocks_ = 0;  // open ones
  std::string out_;
};

Result<std::string> Guard::run() {
  while (position_ < source_.size()) {
    Status checked;
    if (at("{{")) {
      checked = tag('}');
    } else if (at("{%")) {
      checked = tag('%');
    } else if (at("{#")) {
      checked = comment();
    } else {
      out_.push_back(source_[position_++]);
    }
    if (!checked) return fail(checked.error());
  }
  if (auto checked = check_runs(); !checked) return fail(checked.error());
  return std::move(out_);
}

// Only what a comment does to the white space around it is kept.
Status Guard::comment() {
  const auto content = position_ + 2;
  const auto end = source_.find("#}", content);
  if (end == std::string_view::npos) return failed("has a comment without end", position_);
  auto text = source_.substr(content, end - content);
  out_.append("{#");
  if (!text.empty() && is_space_control(text.front())) {
    out_.push_back(text.front());
    text.remove_prefix(1);
  }
  out_.push_back(' ');
  if (!text.empty() && is_space_control(text.back())) out_.push_back(text.back());
  out_.append("#}");
  position_ = end + 2;
  return {};
}

Status Guard::tag(char closer) {
  const auto begin = position_;
  const std::array<char, 2> closing = {closer, '}'};
  const std::string_view end(closing.data(), closing.size());
  int depth = 0;
  out_.append(source_.substr(position_, 2));
  position_ += 2;
  while (position_ < source_.size()) {
    if (position_ - begin > TemplateBounds::kTagBytes) {
      return failed(
          "has a tag of more than " + std::to_string(TemplateBounds::kTagBytes) + " bytes", begin);
    }
    if (depth == 0 && at(end)) {
      out_.append(end);
      position_ += end.size();
      if (closer == '}') return {};
      return block(source_.substr(begin + 2, position_ - begin - 4));
    }
    if (auto checked = tag_character(source_[position_], depth); !checked) return checked;
  }
  return {};  // has no end; the parser says what it expected
}

Status Guard::tag_character(char c, int& depth) {
  switch (c) {
    case '\'':
    case '"':
      string(c);
      return {};
    case '(':
    case '[':
    case '{':
      if (++depth > TemplateBounds::kDepth) {
        return failed("has brackets nested deeper than " + std::to_string(TemplateBounds::kDepth),
                      position_);
      }
      break;
    case ')':
    case ']':
    case '}':
      if (depth > 0) --depth;
      break;
    case '#':
      if (out_.back() == '{') return failed("has a comment within a tag", position_);
      break;
    default:
      break;
  }
  out_.push_back(c);
  ++position_;
  return {};
}

// A literal that contains "{#" would look like a comment to the parser; an escape that stands for
// itself keeps them apart.
void Guard::string(char quote) {
  out_.push_back(quote);
  ++position_;
  bool escaped = false;
  while (position_ < source_.size()) {
    const char c = source_[position_++];
    if (c == '#' && !escaped && out_.back() == '{') out_.push_back('\\');
    out_.push_back(c);
    if (escaped) {
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
    } else if (c == quote) {
      return;
    }
  }
}

Status Guard::block(std::string_view content) {
  const auto skip = [&content](auto wanted) {
    while (!content.empty() && wanted(content.front())) content.remove_prefix(1);
  };
  if (!content.empty() && is_space_control(content.front())) content.remove_prefix(1);
  skip(is_space);
  const auto rest = content;
  skip([](char c) { return c >= 'a' && c <= 'z'; });
  const auto keyword = rest.substr(0, rest.size() - content.size());
  if (keyword.starts_with("end")) {
    if (blocks_ > 0) --blocks_;
    return {};
  }
  constexpr std::array<std::string_view, 7> kOpening = {"if",     "for",        "macro", "call",
                                                        "filter", "generation", "block"};
  bool opens = keyword == "set" && content.find('=') == std::string_view::npos;
  for (const auto one : kOpening) opens = opens || keyword == one;
  if (opens && ++blocks_ > TemplateBounds::kDepth) {
    return failed("has blocks nested deeper than " + std::to_string(TemplateBounds::kDepth),
                  position_);
  }
  return {};
}

Status Guard::check_runs() const {
  std::size_t run = 0;
  for (const char c : out_) {
    run = is_run(c) ? run + 1 : 0;
    if (run > TemplateBounds::kRunBytes) {
      return fail(Reason::kTemplateFailed, "The model's chat template has more than " +
                                               std::to_string(TemplateBounds::kRunBytes) +
                                               " spaces, commas or letters in a row.");
    }
  }
  return {};
}

}  // namespace

Result<std::string> guard_template(std::string_view source) {
  if (source.size() > TemplateBounds::kBytes) {
    return fail(Reason::kTemplateFailed, "The model's chat template has " +
                                             std::to_string(source.size()) + " bytes; at most " +
                                             std::to_string(TemplateBounds::kBytes) +
                                             " (256 KiB) are allowed.");
  }
  return Guard(source).run();
}

}  // namespace berth::worker
