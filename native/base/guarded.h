// A call into the engine -> its result, or a Failure: the one guard between this library and the code of the engine. Failed asserts and
// exceptions of the engine, and failures in callbacks of this library, all arrive here, and the caller gets them as a Failure.
#pragma once
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace onpolicy {

// Returns true if this thread is inside a guarded call, to which `LeaveEngine` can return.
bool IsInEngine();

// Ends the innermost guarded call of this thread with the message of a failed assert. Must be called only if `IsInEngine()`. On Windows the
// engine is built by another compiler, and exceptions of this library must not pass its frames: a jump is used, which runs the destructors
// of the engine's frames. Elsewhere it is an exception, which the engine's own handlers see.
[[noreturn]] void LeaveEngine(const char* message);

// Stores the current exception of a callback of this library. The guarded call throws it when the engine has returned.
void KeepCallbackFailure() noexcept;

// A failed assert or an exception of the engine, which may have lost its device: memory on a GPU must then be leaked, not freed.
class EngineFailed : public Failure {
 public:
  explicit EngineFailed(const char* message) : Failure("BACKEND_FAILED", message) {}
};

// An exception that the engine threw, by which it refuses its input or reports a lost device.
class EngineThrew : public EngineFailed {
 public:
  using EngineFailed::EngineFailed;
};

namespace guard {

// Runs `work(data)` as a guarded call. Throws a Failure, or std::bad_alloc.
void Run(void (*work)(void*), void* data);

}  // namespace guard

// Returns the result of `call`. Throws a Failure with the engine's message, or std::bad_alloc.
template <typename Call>
auto Guard(const Call& call) -> decltype(call()) {
  using Result = decltype(call());
  if constexpr (std::is_void_v<Result>) {
    guard::Run([](void* data) { (*static_cast<const Call*>(data))(); }, const_cast<Call*>(&call));
  } else {
    struct Both {
      const Call& call;
      Result result{};
    } both{call};
    guard::Run([](void* data) { static_cast<Both*>(data)->result = static_cast<Both*>(data)->call(); }, &both);
    return both.result;
  }
}

// Runs the work of a callback that the engine calls. Failures must not pass the engine's frames: the callback returns `otherwise`, and the
// guarded call throws the failure when the engine has returned.
template <typename Work, typename Result>
Result InCallback(const Work& work, Result otherwise) noexcept {
  try {
    return work();
  } catch (...) {
    KeepCallbackFailure();
    return otherwise;
  }
}

// Throws UNSUPPORTED: the engine's libraries do not export a function.
[[noreturn]] void RefuseMissing(const char* name);

// A function of the engine, called through the guard. `name`: for the error of a call without a function; must stay valid.
template <typename Function>
class Guarded;

template <typename Result, typename... Given>
class Guarded<Result (*)(Given...)> {
 public:
  void Set(void* symbol, const char* name) {
    function_ = reinterpret_cast<Result (*)(Given...)>(symbol);
    name_ = name;
  }
  explicit operator bool() const { return function_ != nullptr; }
  Result operator()(Given... given) const {
    if (!function_) RefuseMissing(name_);
    return Guard([&]() -> Result { return function_(given...); });
  }

 private:
  Result (*function_)(Given...) = nullptr;
  const char* name_ = "a function of it";
};

// A function of the engine that frees something. It never throws. If an assert fails, memory that is not freed is lost.
template <typename Function>
class Freeing;

template <typename Given>
class Freeing<void (*)(Given)> {
 public:
  void Set(void* symbol, const char* name) { function_.Set(symbol, name); }
  explicit operator bool() const { return static_cast<bool>(function_); }
  void operator()(Given given) const noexcept {
    try {
      function_(given);
    } catch (...) {
    }
  }

 private:
  Guarded<void (*)(Given)> function_;
};

}  // namespace onpolicy
