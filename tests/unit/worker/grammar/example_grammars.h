#pragma once

#include <array>
#include <string_view>

namespace berth::worker::test {

struct ExampleGrammar {
  std::string_view name;
  std::string_view text;
};

// The kinds of grammar that people use with llama.cpp.
inline constexpr std::array kExampleGrammars = {
    ExampleGrammar{"arithmetic", R"gbnf(root  ::= (sum "=" blank number "\n")+
sum   ::= product ([-+] blank product)*
product ::= term ([*/%] blank term)*
term  ::= name | number | "(" blank sum ")" blank
name  ::= [a-z] [a-z0-9_]* blank
number ::= [0-9]+ ("." [0-9]+)? blank
blank ::= [ \t\n]*
)gbnf"},
    ExampleGrammar{"json", R"gbnf(# any JSON object
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4})
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf"},
    ExampleGrammar{"json array", R"gbnf(root ::= "[\n" (value (",\n" value)*)? "]"
value ::= string | [0-9]+
string ::= "\"" [^"]* "\""
)gbnf"},
    ExampleGrammar{"list", R"gbnf(root ::= item+
item ::= "- " [^\r\n\x0b\x0c\x85\u2028\u2029]+ "\n"
)gbnf"},
    ExampleGrammar{"japanese", R"gbnf(root ::= jp-char+ ([ \t\n] jp-char+)*
jp-char ::= hiragana | katakana | punctuation | cjk
hiragana ::= [ぁ-ゟ]
katakana ::= [ァ-ヿ]
punctuation ::= [、-〾]
cjk ::= [一-鿿]
)gbnf"},
    ExampleGrammar{"chess",
                   R"gbnf(root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move ::= (pawn | piece | castle) [+#]?
piece ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
)gbnf"},
    ExampleGrammar{"c", R"gbnf(root ::= declaration*
declaration ::= type name "(" (parameter ("," ws parameter)*)? ")" "{" statement* "}"
type ::= "int" ws | "float" ws | "char" ws
name ::= [a-zA-Z_] [a-zA-Z_0-9]*
parameter ::= type name
statement ::= (
    ( type name ws "=" ws expression ";" ) |
    ( name ws "=" ws expression ";" ) |
    ( "return" ws expression ";" ) |
    ( "while" "(" condition ")" "{" statement* "}" ) |
    ( "if" "(" condition ")" "{" statement* "}" ("else" "{" statement* "}")? ) |
    ( "//" [^\n]* "\n" ) |
    ( "/*" ( [^*] | ("*" [^/]) )* "*/" )
)
condition ::= expression ("==" | "!=" | "<=" | "<" | ">=" | ">") expression
expression ::= term (("+" | "-") term)*
term ::= factor (("*" | "/") factor)*
factor ::= name | number | "-" factor | "(" expression ")"
number ::= [0-9]+
ws ::= ([ \t\n]+)
)gbnf"},
    ExampleGrammar{"thoughts", R"gbnf(root ::= <think> thought </think> "\n" answer
thought ::= !</think>*
answer ::= "yes" | "no"
)gbnf"},
};

}  // namespace berth::worker::test
