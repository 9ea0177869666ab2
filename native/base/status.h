// The outcome of native work: a code that JavaScript callers branch on, and a message.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace onpolicy {

struct Status {
  std::string code;  // empty: success
  std::string message;
  std::vector<std::string> places = {};   // of a faulty specification: where, from the outside inwards
  std::optional<size_t> offset = {};  // and the byte of the text there

  bool ok() const { return code.empty(); }
  static Status Ok() { return {}; }
  static Status Fail(std::string code, std::string message) { return {std::move(code), std::move(message), {}, {}}; }
};

}  // namespace onpolicy
