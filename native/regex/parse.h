// Text of a regular expression -> an expression of the pool. The dialect is the common ground of ECMA-262 (with `u`)
// and Rust's regex crate. What a finite automaton cannot do (backreferences, look-behind) is an error with its position.
#pragma once
#include <string>
#include <string_view>

#include "regex/char-class.h"

namespace onpolicy::grammar {

struct ParseError {
  size_t position = 0;  // byte offset in the text
  std::string message;
  bool unsupported = false;

  const char* code() const { return unsupported ? "UNSUPPORTED" : "INVALID_REQUEST"; }
};

struct RegexOptions {
  bool search = false;       // match anywhere, as JSON Schema's `pattern` does; otherwise the whole text
  bool ignore_case = false;  // flag i
  bool dot_all = false;      // flag s
  bool allow_lookahead = false;  // leading or embedded (?=...) and (?!...), turned into intersections
};

// The language in the encoder's form. Throws a ParseError.
NodeId ParseRegex(std::string_view pattern, const RegexOptions& options, CharEncoder& encoder);

}  // namespace onpolicy::grammar
