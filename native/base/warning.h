// What a specification says without effect.
#pragma once
#include <string>

namespace onpolicy::grammar {

struct Warning {
  std::string text;           // begins with the JSON pointer of the keyword
  bool accepts_more = false;  // the keyword restricts values, and they are not held to it
};

}  // namespace onpolicy::grammar
