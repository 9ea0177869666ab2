// Work on libuv's shared pool -> a promise. For one-off work (load, save, compile): steps have a thread per context.
// `owner` stays alive until the promise settles; JavaScript must not transfer its buffers before then.
#pragma once
#include <napi.h>

#include <functional>
#include <new>

#include "napi/errors.h"

namespace onpolicy {

// Runs `settle`, which resolves or rejects a promise. An environment that is torn down (process.exit, a terminated worker)
// fails every call into JavaScript, and nobody waits for the promise: the failure ends here.
template <typename Settle>
void SettleIfAlive(const Settle& settle) {
  try {
    settle();
  } catch (const Napi::Error&) {
  }
}

class AsyncTask : public Napi::AsyncWorker {
 public:
  using Work = std::function<Status()>;
  // Builds the resolved value, on the JavaScript thread.
  using Finish = std::function<Napi::Value(Napi::Env)>;

  static Napi::Promise Run(Napi::Env env, Napi::Object owner, Work work, Finish finish) {
    auto* task = new AsyncTask(env, owner, std::move(work), std::move(finish));
    Napi::Promise promise = task->deferred_.Promise();
    task->Queue();
    return promise;
  }

 protected:
  void Execute() override {
    try {
      status_ = work_();
    } catch (const std::bad_alloc&) {
      status_ = Status::Fail("OUT_OF_MEMORY", "not enough memory");
    } catch (const std::exception& error) {
      status_ = Status::Fail("BACKEND_FAILED", error.what());
    } catch (...) {
      status_ = Status::Fail("BACKEND_FAILED", "unknown native failure");
    }
  }

  void OnOK() override {
    SettleIfAlive([this] { Settle(); });
  }

 private:
  void Settle() {
    Napi::HandleScope scope(Env());
    if (!status_.ok()) {
      deferred_.Reject(ToError(Env(), status_).Value());
      return;
    }
    try {
      deferred_.Resolve(finish_(Env()));
    } catch (const Napi::Error& error) {
      deferred_.Reject(error.Value());
    }
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
