// The outcome of native work: a code that JavaScript callers branch on, and a message.
#pragma once
#include <string>
#include <utility>

namespace onpolicy {

struct Status {
  std::string code;  // empty: success
  std::string message;

  bool ok() const { return code.empty(); }
  static Status Ok() { return {}; }
  static Status Fail(std::string code, std::string message) { return {std::move(code), std::move(message)}; }
};

}  // namespace onpolicy
