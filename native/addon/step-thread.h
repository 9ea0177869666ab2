// The thread of one context: takes steps in order and settles their promises on the JavaScript thread.
#pragma once
#include <napi.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "addon/async-task.h"
#include "base/guarded.h"
#include "engine/context.h"

namespace onpolicy {

class StepThread : public std::enable_shared_from_this<StepThread> {
 public:
  struct Job {
    Parts<Context&> parts;
    Napi::Promise::Deferred deferred;
    Status status;
    std::shared_ptr<StepThread> owner;  // outlives the thread until the promise is settled
  };

  StepThread(Napi::Env env, std::shared_ptr<Context> context) : context_(std::move(context)) {
    settle_ = Napi::ThreadSafeFunction::New(env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}),
                                            "onpolicy step", 0, 1);
    settle_.Unref(env);
    thread_ = std::thread([this] { Serve(); });
  }

  ~StepThread() { Stop(); }

  // Resolves with the value that `finish` makes from the result of `work`, see InParts. `uses_ahead`: the job may use results that the
  // context has computed ahead.
  template <typename Work, typename Finish = std::nullptr_t>
  Napi::Promise Push(Napi::Env env, Work work, Finish finish = {}, bool uses_ahead = false) {
    if (!uses_ahead) AbortAhead();
    auto job = std::make_unique<Job>(Job{InParts<Context&>(std::move(work), std::move(finish)),
                                         Napi::Promise::Deferred::New(env), Status::Ok(), shared_from_this()});
    const Napi::Promise promise = job->deferred.Promise();
    if (pending_++ == 0) settle_.Ref(env);  // a running step keeps the process alive, an idle context does not
    {
      std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
    return promise;
  }

  // Number of threads of the last pass, or 0 if the thread was stopped.
  int threads() const {
    const std::shared_ptr<Context> context = Held();
    return context ? context->threads() : 0;
  }

  // Returns the context if no job waits or runs, else null.
  std::shared_ptr<Context> Idle() const { return pending_ == 0 ? Held() : nullptr; }

  // Ends the running step and the thread. The thread rejects waiting jobs with CLOSED. Any thread may call it, while the JavaScript thread
  // still settles the last jobs.
  void Stop() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    context_->Abort();
    wake_.notify_one();
    thread_.join();
    settle_.Release();
    std::shared_ptr<Context> context;  // freed without the lock
    std::lock_guard<std::mutex> lock(mutex_);
    context.swap(context_);
  }

  // Ends the running step early. If none runs, ends the run-ahead step.
  void Abort() {
    AbortAhead();
    if (pending_ == 0) return;
    if (const std::shared_ptr<Context> context = Held()) context->Abort();
  }

 private:
  void AbortAhead() {
    if (const std::shared_ptr<Context> context = Idle()) context->AbortAhead();
  }

  // Returns the context, or null once the thread is stopped.
  std::shared_ptr<Context> Held() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return context_;
  }

  void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      std::unique_ptr<Job> job = std::move(jobs_.front());
      jobs_.pop_front();
      const bool closed = stopping_;
      lock.unlock();
      if (closed) {
        job->status = Status::Fail("CLOSED", "the context was closed");
      } else {
        Run(*job);
      }
      Job* raw = job.release();
      const napi_status queued = settle_.BlockingCall(raw, [](Napi::Env env, Napi::Function, Job* job) {
        if (env != nullptr) job->owner->End(env, *job);
        delete job;
      });
      if (queued != napi_ok) delete raw;
      RunAhead(lock);
    }
  }

  // Computes the next step while JavaScript processes the results of the last job.
  void RunAhead(std::unique_lock<std::mutex>& lock) {
    lock.lock();
    if (stopping_ || !jobs_.empty()) return;
    lock.unlock();
    try {
      context_->RunAhead();
    } catch (...) {  // the step fails again when JavaScript asks for it, and reports the reason then
      context_->Abandon();
    }
    lock.lock();
  }

  void Run(Job& job) {
    try {
      job.parts.work(*context_);
    } catch (const EngineFailed& failed) {  // as of a lost GPU, whose memory can only be leaked
      job.status = failed.status();
      context_->Abandon();
    } catch (const Failure& failure) {
      job.status = failure.status();
    } catch (...) {
      job.status = Status::Caught();
      if (job.status.code != "OUT_OF_MEMORY") context_->Abandon();
    }
  }

  void End(Napi::Env env, const Job& job) {
    try {
      if (--pending_ == 0) {
        if (const std::shared_ptr<Context> context = Held()) context->ClearAbort();  // the abort may have been set after the pass was over
        settle_.Unref(env);
      }
    } catch (const Napi::Error&) {  // the environment is torn down
    }
    Settle(env, job.deferred, job.status, job.parts.finish);
  }

  std::shared_ptr<Context> context_;
  Napi::ThreadSafeFunction settle_;
  std::thread thread_;
  mutable std::mutex mutex_;  // guards the fields below it, and `context_`
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Job>> jobs_;
  bool stopping_ = false;
  int pending_ = 0;  // used on the JavaScript thread only
};

}  // namespace onpolicy
