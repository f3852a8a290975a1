#include "worker/template/template_guard.h"

#include <algorithm>
#include <array>
#include <utility>

#include "worker/template/string_literal.h"

namespace berth::worker {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\v\f";

// A comment that has something for each of minja's regular expressions. It searches with them where
// it means to match, through all of the template that is left, for every token: with this behind
// each tag a search ends soon, and parsing takes a fraction of the time.
constexpr std::string_view kSearchEnd =
    "{#{{}}%}if else or and not in is == ~ + * | true null a.b recursive#}";

bool is_space(char c) {
  return kSpaces.find(c) != std::string_view::npos;
}

bool is_run(char c) {
  return is_space(c) || c == ',' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool is_name(char c) {
  return is_run(c) && !is_space(c) && c != ',';
}

// Every line ends with one line feed, the last with none, as Jinja reads templates.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text.push_back(source[i]);
      continue;
    }
    text.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Guard {
 public:
  explicit Guard(std::string_view source) : source_(source) { out_.reserve(source.size() + 64); }

  Result<std::string> run();

 private:
  void text_before(std::string_view text, char kind);
  void append_text(std::string_view text);
  Status comment();
  Result<bool> raw();       // whether there was a raw block
  Status tag(char closer);  // closer: the '}' of "}}" or the '%' of "%}"
  [[nodiscard]] std::size_t end_of_tag(char closer) const;
  void after_tag(bool strips, bool trims_line);
  Status tag_character(char c, int& depth);
  Status string(char quote);
  bool undefined_test();
  Status block(std::string_view content);
  [[nodiscard]] Status check_runs() const;

  [[nodiscard]] bool at(std::string_view text) const {
    return source_.substr(position_).starts_with(text);
  }
  void skip_spaces() {
    while (position_ < source_.size() && is_space(source_[position_])) ++position_;
  }
  [[nodiscard]] static tl::unexpected<Error> failed(const std::string& what, std::size_t byte) {
    return fail(Reason::kTemplateFailed,
                "The model's chat template " + what + " at byte " + std::to_string(byte) + ".");
  }

  std::string_view source_;
  std::size_t position_ = 0;
  bool line_starts_ = true;  // nothing but a line's end was before `position_`
  int blocks_ = 0;           // open ones
  std::string out_;
};

Result<std::string> Guard::run() {
  while (position_ < source_.size()) {
    auto next = position_;
    const auto opens = [this](std::size_t byte) {
      const auto pair = source_.substr(byte, 2);
      return pair == "{{" || pair == "{%" || pair == "{#";
    };
    while (next < source_.size() && !opens(next)) ++next;
    const auto text = source_.substr(position_, next - position_);
    position_ = next;
    if (next == source_.size()) {
      append_text(text);
      break;
    }
    const char kind = source_[next + 1];
    text_before(text, kind);
    Status checked;
    if (kind == '#') {
      checked = comment();
    } else if (kind == '{') {
      checked = tag('}');
    } else {
      const auto was_raw = raw();
      if (!was_raw) return fail(was_raw.error());
      if (!*was_raw) checked = tag('%');
    }
    if (!checked) return fail(checked.error());
  }
  if (auto checked = check_runs(); !checked) return fail(checked.error());
  return std::move(out_);
}

// The text before a tag at position_: `-` takes all white space off its end, else blocks and
// comments take what indents them.
void Guard::text_before(std::string_view text, char kind) {
  const char sign = position_ + 2 < source_.size() ? source_[position_ + 2] : '\0';
  if (sign == '-') {
    text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
  } else if (sign != '+' && kind != '{') {
    const auto line = text.rfind('\n') + 1;  // 0 where there is none
    const bool blank = text.find_first_not_of(kSpaces, line) == std::string_view::npos;
    if (blank && (line > 0 || line_starts_)) text = text.substr(0, line);
  }
  append_text(text);
  line_starts_ = false;
}

// Text becomes an expression that prints it: a brace at its end cannot open a tag together with
// what follows, and minja has nothing to search for.
void Guard::append_text(std::string_view text) {
  if (text.empty()) return;
  out_.append("{{ ").append(minja_quoted(text)).append(" }}").append(kSearchEnd);
}

// What follows a tag's end: `-` takes all white space, blocks and comments take one line's end.
void Guard::after_tag(bool strips, bool trims_line) {
  const auto begin = position_;
  if (strips) {
    skip_spaces();
  } else if (trims_line && at("\n")) {
    ++position_;
  }
  line_starts_ = position_ > begin && source_[position_ - 1] == '\n';
}

Status Guard::comment() {
  const auto begin = position_;
  const auto end = source_.find("#}", begin + 2);
  if (end == std::string_view::npos) return failed("has a comment without end", begin);
  const char sign = end > begin + 2 ? source_[end - 1] : '\0';
  position_ = end + 2;
  after_tag(sign == '-', sign != '+');
  return {};
}

Result<bool> Guard::raw() {
  const auto begin = position_;
  const auto keyword = [this](std::string_view name) {
    position_ += 2;
    if (at("-") || at("+")) ++position_;
    skip_spaces();
    if (!at(name)) return false;
    position_ += name.size();
    skip_spaces();
    return true;
  };
  if (!keyword("raw") || !(at("%}") || at("-%}"))) {
    position_ = begin;
    return false;
  }
  const bool strips = at("-");
  position_ += strips ? 3 : 2;
  after_tag(strips, false);
  const auto content = position_;
  for (auto next = source_.find("{%", content); next != std::string_view::npos;
       next = source_.find("{%", next + 2)) {
    position_ = next;
    if (!keyword("endraw") || !(at("%}") || at("-%}") || at("+%}"))) continue;
    const auto end = position_;
    position_ = next;
    text_before(source_.substr(content, next - content), '%');
    position_ = end + (source_[end] == '%' ? 2 : 3);
    after_tag(source_[end] == '-', source_[end] != '+');
    return true;
  }
  return failed("has a raw block without end", begin);
}

// Bytes of the tag's end at position_; 0 where there is none.
std::size_t Guard::end_of_tag(char closer) const {
  const std::array<char, 3> end = {'-', closer, '}'};
  const std::string_view stripping(end.data(), end.size());
  if (at(stripping.substr(1))) return 2;
  if (at(stripping) || (closer == '%' && at("+%}"))) return 3;
  return 0;
}

Status Guard::tag(char closer) {
  const auto begin = position_;
  int depth = 0;
  out_.append(source_.substr(position_, 2)).push_back(' ');
  position_ += 2;
  if (at("-") || at("+")) ++position_;
  const auto content = position_;
  while (position_ < source_.size()) {
    if (position_ - begin > TemplateBounds::kTagBytes) {
      return failed(
          "has a tag of more than " + std::to_string(TemplateBounds::kTagBytes) + " bytes", begin);
    }
    const auto end = depth == 0 ? end_of_tag(closer) : 0;
    if (end > 0) {
      const char sign = end == 3 ? source_[position_] : '\0';
      const auto inside = source_.substr(content, position_ - content);
      out_.append({' ', closer, '}'}).append(kSearchEnd);
      position_ += end;
      after_tag(sign == '-', closer == '%' && sign != '+');
      return closer == '%' ? block(inside) : Status();
    }
    if (undefined_test()) continue;
    if (auto checked = tag_character(source_[position_], depth); !checked) return checked;
  }
  return {};  // has no end; the parser says what it expected
}

// minja knows `is defined` only.
bool Guard::undefined_test() {
  constexpr std::string_view kWord = "undefined";
  const auto behind = position_ + kWord.size();
  if (!at(kWord) || (behind < source_.size() && is_name(source_[behind]))) return false;
  auto before = std::string_view(out_);
  const auto drop_word = [&before](std::string_view word) {
    auto rest = before.substr(0, before.find_last_not_of(kSpaces) + 1);
    if (rest.size() == before.size() || !rest.ends_with(word)) return false;
    rest.remove_suffix(word.size());
    if (!rest.empty() && is_name(rest.back())) return false;
    before = rest;
    return true;
  };
  const bool negated = drop_word("not");
  if (!drop_word("is")) return false;
  out_.resize(before.size());
  out_.append(negated ? "is defined" : "is not defined");
  position_ = behind;
  return true;
}

Status Guard::tag_character(char c, int& depth) {
  switch (c) {
    case '\'':
    case '"':
      return string(c);
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
      if (out_.back() == '{' || source_[position_ - 1] == '{') {
        return failed("has a comment within a tag", position_);
      }
      break;
    default:
      break;
  }
  out_.push_back(c);
  ++position_;
  return {};
}

Status Guard::string(char quote) {
  const auto begin = position_++;
  while (position_ < source_.size() && source_[position_] != quote) {
    position_ += std::size_t{source_[position_] == '\\' ? 2U : 1U};
  }
  if (position_ >= source_.size()) return failed("has a string without end", begin);
  const auto literal = minja_string_literal(source_.substr(begin + 1, position_ - begin - 1));
  if (!literal) return fail(literal.error());
  out_.append(*literal);
  ++position_;
  return {};
}

Status Guard::block(std::string_view content) {
  const auto skip = [&content](auto wanted) {
    while (!content.empty() && wanted(content.front())) content.remove_prefix(1);
  };
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
  if (auto fits = check_template_bytes(source); !fits) return fail(fits.error());
  const auto text = with_plain_lines(source);
  return Guard(text).run();
}

}  // namespace berth::worker
