// The rules for JSON without a schema, and for the formats of strings. White space, digits and
// exponents are bounded: a model that may write blanks without end sometimes does.

#include <array>
#include <string_view>

#include "worker/grammar/rule_book.h"

namespace berth::worker {
namespace {

struct JsonRule {
  std::string_view name;
  std::string_view body;
  std::array<std::string_view, 6> needs;
};

// Escapes of UTF-16 surrogates come in pairs only (RFC 8259, section 7), and a pair is one
// character. Dates and times: RFC 3339, section 5.6, in capital letters.
constexpr std::array kJsonRules = {
    JsonRule{"json-ws", R"((" " | "\n" [ \t]{0,24})?)", {}},
    JsonRule{"json-sp", R"(" "?)", {}},
    JsonRule{"json-hex", "[0-9A-Fa-f]", {}},
    JsonRule{"json-escape",
             R"("\\" (["\\/bfnrt] | "u" ([0-9A-Ca-cEFef] json-hex{3} | [Dd] [0-7] json-hex{2} | )"
             R"([Dd] [89ABab] json-hex{2} "\\u" [Dd] [C-Fc-f] json-hex{2})))",
             {"json-hex"}},
    JsonRule{"json-char", R"([^"\\\x00-\x1F] | json-escape)", {"json-escape"}},
    JsonRule{"json-string", R"("\"" json-char* "\"")", {"json-char"}},
    JsonRule{"json-whole", R"("0" | [1-9] [0-9]{0,18})", {}},
    JsonRule{"json-integer", R"("-"? json-whole)", {"json-whole"}},
    JsonRule{"json-fraction", R"("." [0-9]{1,20})", {}},
    JsonRule{"json-number",
             R"("-"? json-whole json-fraction? ([Ee] [+\x2D]? "1"? [0-9]{1,2})?)",
             {"json-whole", "json-fraction"}},
    JsonRule{"json-boolean", R"("true" | "false")", {}},
    JsonRule{"json-null", R"("null")", {}},
    JsonRule{"json-member",
             R"(json-string ":" json-sp json-value)",
             {"json-string", "json-sp", "json-value"}},
    JsonRule{"json-object",
             R"("{" json-ws (json-member ("," json-ws json-member)* json-ws)? "}")",
             {"json-ws", "json-member"}},
    JsonRule{"json-array",
             R"("[" json-ws (json-value ("," json-ws json-value)* json-ws)? "]")",
             {"json-ws", "json-value"}},
    JsonRule{
        "json-value",
        "json-object | json-array | json-string | json-number | json-boolean | json-null",
        {"json-object", "json-array", "json-string", "json-number", "json-boolean", "json-null"}},
    JsonRule{"json-date",
             R"([0-9]{4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) | )"
             R"(("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30") | )"
             R"("02-" ("0" [1-9] | [12] [0-9])))",
             {}},
    JsonRule{"json-hour", R"([01] [0-9] | "2" [0-3])", {}},
    JsonRule{"json-time",
             R"(json-hour ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,9})? )"
             R"(("Z" | [+\x2D] json-hour ":" [0-5] [0-9]))",
             {"json-hour"}},
    JsonRule{"json-date-time", R"(json-date "T" json-time)", {"json-date", "json-time"}},
    JsonRule{"json-uuid",
             R"(json-hex{8} "-" json-hex{4} "-" json-hex{4} "-" json-hex{4} "-" json-hex{12})",
             {"json-hex"}},
};

}  // namespace

std::string RuleBook::json(std::string_view name) {
  std::string result(name);
  if (!json_rules_.insert(result).second) return result;
  for (const auto& rule : kJsonRules) {
    if (rule.name != name) continue;
    for (const auto needed : rule.needs) {
      if (!needed.empty()) json(needed);
    }
    define(result, std::string(rule.body));
  }
  return result;
}

}  // namespace berth::worker
