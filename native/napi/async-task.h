// Work on libuv's shared pool -> a promise. For one-off work (load, save, compile): steps have a thread per context.
// `owner` stays alive until the promise settles; JavaScript must not transfer its buffers before then.
#pragma once
#include <napi.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "napi/errors.h"

namespace onpolicy {

// Resolves a promise with what `finish(env)` builds, or rejects it. An environment that is torn down (process.exit, a terminated
// worker) fails every call into JavaScript, and nobody waits for the promise: the failure ends here.
template <typename Finish>
void Settle(Napi::Env env, const Napi::Promise::Deferred& deferred, Status status, const Finish& finish) {
  try {
    Napi::HandleScope scope(env);
    try {
      if (status.ok()) return deferred.Resolve(finish(env));
    } catch (const Napi::Error& error) {
      return deferred.Reject(error.Value());
    } catch (...) {
      status = Status::Caught();
    }
    deferred.Reject(ToError(env, status).Value());
  } catch (...) {
  }
}

// `work`, and a flag that is set until it has ended, or will not begin.
template <typename Work>
auto Busy(std::atomic<bool>* flag, Work work) {
  *flag = true;
  std::shared_ptr<std::atomic<bool>> held(flag, [](std::atomic<bool>* flag) { *flag = false; });
  return [held = std::move(held), work = std::move(work)]() mutable {
    const auto until_end = std::move(held);
    return work();
  };
}

class AsyncTask : public Napi::AsyncWorker {
 public:
  // Resolves with what `finish(env, result)` makes of what `work` returns, on the JavaScript thread. Work that returns a Status has
  // no other result. Without `finish`: with undefined.
  template <typename Work, typename Finish = std::nullptr_t>
  static Napi::Promise Run(Napi::Env env, Napi::Object owner, Work work, Finish finish = {}) {
    using Result = std::invoke_result_t<Work&>;
    if constexpr (std::is_void_v<Result>) {
      return Run(env, owner, [work = std::move(work)]() mutable {
        work();
        return Status::Ok();
      });
    } else if constexpr (!std::is_same_v<Result, Status>) {
      auto result = std::make_shared<std::optional<Result>>();
      return Start(
          env, owner,
          [work = std::move(work), result]() mutable {
            result->emplace(work());
            return Status::Ok();
          },
          [finish = std::move(finish), result](Napi::Env env) -> Napi::Value { return finish(env, **result); });
    } else if constexpr (std::is_null_pointer_v<Finish>) {
      return Start(env, owner, std::move(work), [](Napi::Env env) { return env.Undefined(); });
    } else {
      return Start(env, owner, std::move(work), std::move(finish));
    }
  }
  // The same for work that needs no object.
  template <typename Work, typename Finish = std::nullptr_t>
    requires(!std::is_base_of_v<Napi::Value, Work>)
  static Napi::Promise Run(Napi::Env env, Work work, Finish finish = {}) {
    return Run(env, Napi::Object::New(env), std::move(work), std::move(finish));
  }

 protected:
  void Execute() override {
    try {
      status_ = work_();
    } catch (...) {
      status_ = Status::Caught();
    }
  }

  void OnOK() override { Settle(Env(), deferred_, std::move(status_), finish_); }

 private:
  using Work = std::function<Status()>;
  using Finish = std::function<Napi::Value(Napi::Env)>;

  static Napi::Promise Start(Napi::Env env, Napi::Object owner, Work work, Finish finish) {
    auto* task = new AsyncTask(env, owner, std::move(work), std::move(finish));
    Napi::Promise promise = task->deferred_.Promise();
    task->Queue();
    return promise;
  }

  AsyncTask(Napi::Env env, Napi::Object owner, Work work, Finish finish)
      : Napi::AsyncWorker(env),
        owner_(Napi::Persistent(owner)),
        deferred_(Napi::Promise::Deferred::New(env)),
        work_(std::move(work)),
        finish_(std::move(finish)) {}

  Napi::ObjectReference owner_;
  Napi::Promise::Deferred deferred_;
  Work work_;
  Finish finish_;
  Status status_;
};

}  // namespace onpolicy
