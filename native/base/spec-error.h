// The reason why a specification was refused, and the place of the fault; warnings about one that was not.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace onpolicy::grammar {

// Says that a part of a specification has no effect.
struct Warning {
  std::string text;           // begins with the JSON pointer of the keyword
  bool accepts_more = false;  // true if the keyword restricts values but is not enforced
};

class SpecError : public Failure {
 public:
  // `code`: INVALID_REQUEST for a malformed specification, UNSUPPORTED for one that cannot be enforced.
  // `where`: a JSON pointer, or a line and column. `offset`: bytes from the start of the text that is at fault.
  SpecError(std::string code, std::string where, const std::string& what, std::optional<size_t> offset = {})
      : SpecError(std::move(code), where.empty() ? std::vector<std::string>() : std::vector{std::move(where)}, what, offset) {}

  // Returns the same error for a specification that contains this one at `where`. In a text, `offset` is the offset of this part.
  SpecError Within(const std::string& where, std::optional<size_t> offset) const {
    std::vector<std::string> places = {where};
    places.insert(places.end(), status().places.begin(), status().places.end());
    return {status().code, std::move(places), reason_, offset};
  }

  std::optional<size_t> offset() const { return status().offset; }

 private:
  SpecError(std::string code, std::vector<std::string> places, const std::string& what, std::optional<size_t> offset)
      : Failure(Status{std::move(code), Message(places, what), std::move(places), offset}), reason_(what) {}

  static std::string Message(const std::vector<std::string>& places, const std::string& what) {
    std::string message;
    for (const std::string& place : places) message += place + ": ";
    return message + what;
  }

  std::string reason_;
};

}  // namespace onpolicy::grammar
