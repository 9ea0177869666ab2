// The outcome of native work: a code that JavaScript callers branch on, and a message.
#pragma once
#include <exception>
#include <new>
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
  // Of the exception that is being handled.
  static Status Caught() {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return Fail("OUT_OF_MEMORY", "not enough memory");
    } catch (const std::exception& error) {
      return Fail("BACKEND_FAILED", error.what());
    } catch (...) {
      return Fail("BACKEND_FAILED", "unknown native failure");
    }
  }
};

}  // namespace onpolicy
