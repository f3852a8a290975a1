#include "worker/template/json_input.h"

#include <exception>
#include <string>
#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::size_t kMessageBytes = 300;

// Looks at a text of JSON before it takes memory: whether it is well-formed, how deep it is nested
// and how many elements its outermost value has. (With a callback, Json::parse would take quadratic
// time.)
class Survey final : public nlohmann::json_sax<Json> {
 public:
  [[nodiscard]] bool too_deep() const { return depth_ > JsonBounds::kDepth; }
  [[nodiscard]] std::size_t elements() const { return elements_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }  // empty: well-formed

  bool null() override { return value(); }
  bool boolean(bool /*value*/) override { return value(); }
  bool number_integer(number_integer_t /*value*/) override { return value(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return value(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return value(); }
  bool string(string_t& /*value*/) override { return value(); }
  bool binary(binary_t& /*value*/) override { return value(); }
  bool key(string_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return begin(); }
  bool start_array(std::size_t /*elements*/) override { return begin(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& problem) override {
    problem_ = problem.what();
    return false;
  }

 private:
  bool value() {
    if (depth_ == 1) ++elements_;
    return true;
  }
  bool begin() {
    value();
    ++depth_;
    return !too_deep();
  }
  bool end() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::size_t elements_ = 0;
  std::string problem_;
};

Result<Json> parse(std::string_view text, std::string_view param, std::string_view what) {
  const auto invalid = [&](const std::string& how) {
    return invalid_argument(param, std::string(what) + " " + how);
  };
  if (auto fits = check_json_bytes(text, param, what); !fits) return fail(fits.error());
  Survey survey;
  Json value;
  try {
    if (Json::sax_parse(text.begin(), text.end(), &survey) &&
        survey.elements() <= JsonBounds::kElements) {
      value = Json::parse(text.begin(), text.end());
    }
  } catch (const std::exception& problem) {
    return invalid("are not valid JSON: " + printable_line(problem.what(), kMessageBytes));
  }
  if (survey.too_deep()) {
    return invalid("are nested deeper than " + std::to_string(JsonBounds::kDepth) + " levels.");
  }
  if (!survey.problem().empty()) {
    return invalid("are not valid JSON: " + printable_line(survey.problem(), kMessageBytes));
  }
  if (survey.elements() > JsonBounds::kElements) {
    return invalid("are " + std::to_string(survey.elements()) + "; at most " +
                   std::to_string(JsonBounds::kElements) + " are allowed.");
  }
  return value;
}

}  // namespace

Result<Json> parse_array(std::string_view text, std::string_view param, std::string_view what) {
  auto value = parse(text, param, what);
  if (value && !value->is_array()) {
    return invalid_argument(param, std::string(what) + " must be a JSON array, not " +
                                       std::string(value->type_name()) + ".");
  }
  return value;
}

Result<Json> parse_object(std::string_view text, std::string_view param, std::string_view what) {
  auto value = parse(text, param, what);
  if (value && !value->is_object()) {
    return invalid_argument(param, std::string(what) + " must be a JSON object, not " +
                                       std::string(value->type_name()) + ".");
  }
  return value;
}

}  // namespace berth::worker
