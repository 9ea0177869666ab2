// Work on libuv's shared pool -> a promise. For one-off work (load, save, compile): steps have a thread per context.
// `owner` stays alive until the promise settles; JavaScript must not transfer its buffers before then.
#pragma once
#include <napi.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "addon/errors.h"

namespace onpolicy {

// Rejects a promise because memory ran out, without an allocation.
inline void RejectForMemory(napi_env env, const Napi::Promise::Deferred& deferred) noexcept {
  napi_value code, message, error;
  bool is_pending = false;
  if (napi_is_exception_pending(env, &is_pending) == napi_ok && is_pending) napi_get_and_clear_last_exception(env, &error);
  if (napi_create_string_latin1(env, "OUT_OF_MEMORY", NAPI_AUTO_LENGTH, &code) != napi_ok ||
      napi_create_string_latin1(env, "out of memory", NAPI_AUTO_LENGTH, &message) != napi_ok ||
      napi_create_error(env, code, message, &error) != napi_ok)
    return;
  try {
    deferred.Reject(error);
  } catch (...) {
  }
}

template <typename Finish>
void SettleOrThrow(Napi::Env env, const Napi::Promise::Deferred& deferred, Status status, const Finish& finish) {
  try {
    if (status.ok()) return deferred.Resolve(finish(env));
  } catch (const Napi::Error& error) {
    return deferred.Reject(error.Value());
  } catch (...) {
    status = Status::Caught();
  }
  deferred.Reject(ToError(env, status).Value());
}

// Resolves a promise with the result of `finish(env)`, or rejects it. In an environment that is torn down (process.exit, a terminated
// worker) every call into JavaScript fails. No caller waits for the promise then, so the failure is dropped.
template <typename Finish>
void Settle(Napi::Env env, const Napi::Promise::Deferred& deferred, Status status, const Finish& finish) noexcept {
  napi_handle_scope scope;
  if (napi_open_handle_scope(env, &scope) != napi_ok) return;
  try {
    SettleOrThrow(env, deferred, std::move(status), finish);
  } catch (...) {
    RejectForMemory(env, deferred);
  }
  napi_close_handle_scope(env, scope);
}

// Returns `work` with a flag that is set until the work has ended or was dropped.
template <typename Work>
auto Busy(std::atomic<bool>* flag, Work work) {
  *flag = true;
  std::shared_ptr<std::atomic<bool>> held(flag, [](std::atomic<bool>* flag) { *flag = false; });
  return [held = std::move(held), work = std::move(work)]() mutable {
    const auto until_end = std::move(held);
    return work();
  };
}

// Work off the JavaScript thread, and a function that makes its result on that thread.
template <typename... Given>
struct Parts {
  std::function<void(Given...)> work;
  std::function<Napi::Value(Napi::Env)> finish;
};

// `finish(env, result)` makes the JavaScript value from the result of `work`. Without `finish` the value is undefined.
template <typename... Given, typename Work, typename Finish = std::nullptr_t>
Parts<Given...> InParts(Work work, Finish finish = {}) {
  if constexpr (std::is_null_pointer_v<Finish>) {
    return {std::move(work), [](Napi::Env env) { return env.Undefined(); }};
  } else {
    auto result = std::make_shared<std::optional<std::invoke_result_t<Work&, Given...>>>();
    return {[work = std::move(work), result](Given... given) mutable { result->emplace(work(given...)); },
            [finish = std::move(finish), result](Napi::Env env) -> Napi::Value { return finish(env, **result); }};
  }
}

class AsyncTask : public Napi::AsyncWorker {
 public:
  // Resolves with the value that `finish` makes from the result of `work`, see InParts.
  template <typename Work, typename Finish = std::nullptr_t>
  static Napi::Promise Run(Napi::Env env, Napi::Object owner, Work work, Finish finish = {}) {
    auto* task = new AsyncTask(env, owner, InParts(std::move(work), std::move(finish)));
    Napi::Promise promise = task->deferred_.Promise();
    task->Queue();
    return promise;
  }
  // The same for work that does not use an object.
  template <typename Work, typename Finish = std::nullptr_t>
    requires(!std::is_base_of_v<Napi::Value, Work>)
  static Napi::Promise Run(Napi::Env env, Work work, Finish finish = {}) {
    return Run(env, Napi::Object::New(env), std::move(work), std::move(finish));
  }

 protected:
  void Execute() override {
    try {
      parts_.work();
    } catch (...) {
      status_ = Status::Caught();
    }
  }

  void OnOK() override { Settle(Env(), deferred_, std::move(status_), parts_.finish); }

 private:
  AsyncTask(Napi::Env env, Napi::Object owner, Parts<> parts)
      : Napi::AsyncWorker(env),
        owner_(Napi::Persistent(owner)),
        deferred_(Napi::Promise::Deferred::New(env)),
        parts_(std::move(parts)) {}

  Napi::ObjectReference owner_;
  Napi::Promise::Deferred deferred_;
  Parts<> parts_;
  Status status_;
};

}  // namespace onpolicy
