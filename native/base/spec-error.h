// Why a specification was refused; thrown and caught inside the compiler, never beyond it.
#pragma once
#include <stdexcept>
#include <string>

namespace onpolicy::grammar {

class SpecError : public std::runtime_error {
 public:
  // `code`: INVALID_REQUEST for a malformed specification, UNSUPPORTED for one that cannot be enforced.
  // `where`: a JSON pointer, or a line and column.
  SpecError(std::string code, std::string where, const std::string& what)
      : std::runtime_error(where.empty() ? what : where + ": " + what), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

}  // namespace onpolicy::grammar
