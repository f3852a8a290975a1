#include "worker/grammar/json_schema.h"

#include "common/text.h"
#include "worker/grammar/code_points.h"
#include "worker/grammar/gbnf_check.h"
#include "worker/grammar/schema_compiler.h"

namespace berth::worker {
namespace {

Status check_form(const GrammarForm& form) {
  for (const auto* part :
       {&form.opening, &form.before, &form.after, &form.separator, &form.closing}) {
    if (part->size() > GrammarForm::kWrapperBytes) {
      return fail(Reason::kInvalidArgument, "The text around a document has " +
                                                std::to_string(part->size()) + " bytes; at most " +
                                                std::to_string(GrammarForm::kWrapperBytes) +
                                                " are allowed.");
    }
    if (first_invalid_utf8(*part) || part->find('\0') != std::string::npos) {
      return fail(Reason::kInvalidArgument,
                  "The text around a document must be UTF-8 without NUL characters.");
    }
  }
  return {};
}

void append(std::string& body, const std::string& literal) {
  if (!literal.empty()) body += " " + gbnf_literal(literal);
}

std::string root_body(const GrammarForm& form, const std::string& document, RuleBook& book) {
  std::string one;
  append(one, form.before);
  one += " " + document;
  append(one, form.after);
  std::string body;
  append(body, form.opening);
  if (form.repeated) {
    const auto first = book.share("wrapped", one.substr(1));
    std::string more;
    append(more, form.separator);
    more += " " + first;
    body += " " + first + " " +
            book.repeat(book.share("more", more.substr(1)), 0, GrammarForm::kDocuments - 1);
  } else {
    body += one;
  }
  append(body, form.closing);
  return body.substr(1);
}

}  // namespace

Result<std::string> json_schema_to_gbnf(std::string_view schema_json) {
  return json_schema_to_gbnf(schema_json, GrammarForm{});
}

Result<std::string> json_schema_to_gbnf(std::string_view schema_json, const GrammarForm& form) {
  if (auto checked = check_form(form); !checked) return fail(checked.error());
  const auto document = SchemaDocument::parse(schema_json);
  if (!document) return fail(document.error());
  SchemaCompiler compiler(*document);
  const auto name = compiler.compile();
  if (!name) return fail(name.error());
  auto& book = compiler.book();
  book.define("root", root_body(form, *name, book));
  if (auto within = book.status(); !within) return fail(within.error());
  auto text = book.text();
  // The rules are sound by construction; what they cost libllama is only known when all are there.
  if (const auto checked = check_gbnf(text, GbnfBounds::kConverterBytes); !checked) {
    return fail(Reason::kInvalidArgument,
                "The schema is too large as a grammar; use fewer alternatives, properties or "
                "smaller counts. " +
                    checked.error().message);
  }
  return text;
}

std::string any_json_grammar() {
  RuleBook book;
  book.define("root", book.json("json-object"));
  return book.text();
}

}  // namespace berth::worker
