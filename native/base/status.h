// The outcome of native work: a code that JavaScript callers branch on, and a message. A Failure carries it as an exception.
#pragma once
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace onpolicy {

struct Status {
  std::string code;  // empty means success
  std::string message;
  std::vector<std::string> places = {};   // path of the fault in a specification, from the outside inwards
  std::optional<size_t> offset = {};  // byte of the fault in the text at that path

  bool ok() const { return code.empty(); }
  static Status Ok() { return {}; }
  static Status Fail(std::string code, std::string message) { return {std::move(code), std::move(message), {}, {}}; }
  // Allocates nothing: both texts are so short that strings hold them in place.
  static Status OutOfMemory() noexcept {
    Status status;
    status.code.assign("OUT_OF_MEMORY");
    status.message.assign("out of memory");
    return status;
  }
  // Returns the status of the exception that is being handled. Allocates no memory if that is std::bad_alloc.
  static Status Caught() noexcept;
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

inline Status Status::Caught() noexcept {
  try {
    try {
      throw;
    } catch (const Failure& failure) {
      return failure.status();
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    } catch (const std::exception& error) {
      return Fail("BACKEND_FAILED", error.what());
    } catch (...) {
      return Fail("BACKEND_FAILED", "unknown native failure");
    }
  } catch (...) {  // the message could not be allocated
    return OutOfMemory();
  }
}

}  // namespace onpolicy
