// The outcome of native work: a code that JavaScript callers branch on, and a message. A Failure is one that is thrown.
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
  static Status Caught();
};

class Failure : public std::exception {
 public:
  explicit Failure(Status status) : status_(std::move(status)) {}
  Failure(std::string code, std::string message) : Failure(Status::Fail(std::move(code), std::move(message))) {}
  const char* what() const noexcept override { return status_.message.c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

inline Status Status::Caught() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.status();
  } catch (const std::bad_alloc&) {
    return Fail("OUT_OF_MEMORY", "not enough memory");
  } catch (const std::exception& error) {
    return Fail("BACKEND_FAILED", error.what());
  } catch (...) {
    return Fail("BACKEND_FAILED", "unknown native failure");
  }
}

}  // namespace onpolicy
