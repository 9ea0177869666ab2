// The type of warnings about parts of a specification that have no effect.
#pragma once
#include <string>

namespace onpolicy::grammar {

struct Warning {
  std::string text;           // begins with the JSON pointer of the keyword
  bool accepts_more = false;  // true if the keyword restricts values but is not enforced
};

}  // namespace onpolicy::grammar
