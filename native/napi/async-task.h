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

// Work off the JavaScript thread, and what builds its result on that thread.
template <typename... Given>
struct Parts {
  std::function<void(Given...)> work;
  std::function<Napi::Value(Napi::Env)> finish;
};

// `finish(env, result)` builds it of what `work` returns. Without `finish` it is undefined.
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
  // Resolves with what `finish` builds of the result of `work`, see InParts.
  template <typename Work, typename Finish = std::nullptr_t>
  static Napi::Promise Run(Napi::Env env, Napi::Object owner, Work work, Finish finish = {}) {
    auto* task = new AsyncTask(env, owner, InParts(std::move(work), std::move(finish)));
    Napi::Promise promise = task->deferred_.Promise();
    task->Queue();
    return promise;
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
