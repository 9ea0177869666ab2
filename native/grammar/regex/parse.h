// Text of a regular expression -> an expression of the pool. The dialect is the common part of ECMA-262 (with `u`) and Rust's regex crate.
// Features that a finite automaton cannot implement (backreferences, look-behind) are errors with their position.
#pragma once
#include <string>
#include <string_view>

#include "grammar/regex/char-class.h"

namespace onpolicy::grammar {

struct ParseError {
  size_t position = 0;  // byte offset in the text
  std::string message;
  bool unsupported = false;

  const char* code() const { return unsupported ? "UNSUPPORTED" : "INVALID_REQUEST"; }
};

struct RegexOptions {
  bool search = false;       // match anywhere, as JSON Schema's `pattern` does; false: match the whole text
  bool ignore_case = false;  // flag i
  bool dot_all = false;      // flag s
  bool allow_lookahead = false;  // leading or embedded (?=...) and (?!...), turned into intersections
};

// Returns the language in the encoder's form. Throws a ParseError.
NodeId ParseRegex(std::string_view pattern, const RegexOptions& options, CharEncoder& encoder);

}  // namespace onpolicy::grammar
