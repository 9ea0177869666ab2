// Why a specification was refused, and where; thrown and caught inside the compiler, never beyond it.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace onpolicy::grammar {

class SpecError : public std::runtime_error {
 public:
  // `code`: INVALID_REQUEST for a malformed specification, UNSUPPORTED for one that cannot be enforced.
  // `where`: a JSON pointer, or a line and column. `offset`: bytes from the start of the text that is at fault.
  SpecError(std::string code, std::string where, const std::string& what, std::optional<size_t> offset = {})
      : SpecError(std::move(code), where.empty() ? std::vector<std::string>() : std::vector{std::move(where)}, what, offset) {}

  // The same error in a specification that holds this one at `where`. In text, `offset` is that of the part at fault.
  SpecError Within(const std::string& where, std::optional<size_t> offset) const {
    std::vector<std::string> places = {where};
    places.insert(places.end(), places_.begin(), places_.end());
    return {code_, std::move(places), reason_, offset};
  }

  const std::string& code() const { return code_; }
  // From the outermost specification inwards.
  const std::vector<std::string>& places() const { return places_; }
  std::optional<size_t> offset() const { return offset_; }

 private:
  SpecError(std::string code, std::vector<std::string> places, const std::string& what, std::optional<size_t> offset)
      : std::runtime_error(Message(places, what)),
        code_(std::move(code)),
        places_(std::move(places)),
        reason_(what),
        offset_(offset) {}

  static std::string Message(const std::vector<std::string>& places, const std::string& what) {
    std::string message;
    for (const std::string& place : places) message += place + ": ";
    return message + what;
  }

  std::string code_;
  std::vector<std::string> places_;
  std::string reason_;
  std::optional<size_t> offset_;
};

}  // namespace onpolicy::grammar
