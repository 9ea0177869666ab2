// An opened trainer of either kind, shared by its JavaScript functions: one computation at a time, off the JavaScript thread.
#pragma once
#include <atomic>
#include <memory>

#include "napi/arguments.h"
#include "napi/async-task.h"
#include "trainer/adamw.h"
#include "trainer/row.h"

namespace onpolicy {

template <typename Trainer>
struct TrainerHandle {
  std::unique_ptr<Trainer> trainer;
  std::atomic<bool> is_busy{false};
};

// The trainer, when it is open and idle; throws otherwise.
template <typename Trainer>
Trainer& Idle(Napi::Env env, const std::shared_ptr<TrainerHandle<Trainer>>& handle) {
  if (!handle->trainer) {
    Napi::Error error = Napi::Error::New(env, "the trainer is closed");
    error.Set("code", "CLOSED");
    throw error;
  }
  if (handle->is_busy) ThrowTypeError(env, "the trainer is computing: calls are made one after the other");
  return *handle->trainer;
}

// Runs `work` on another thread while the handle counts as busy.
template <typename Trainer, typename Work>
Napi::Promise RunBusy(Napi::Env env, Napi::Object owner, const std::shared_ptr<TrainerHandle<Trainer>>& handle,
                      Work work, AsyncTask::Finish finish) {
  Trainer& trainer = Idle(env, handle);
  handle->is_busy = true;
  return AsyncTask::Run(
      env, owner,
      [handle, &trainer, work = std::move(work)] {
        struct Release {
          TrainerHandle<Trainer>* handle;
          ~Release() { handle->is_busy = false; }
        } release{handle.get()};
        return work(trainer);
      },
      std::move(finish));
}

// Ends a computation that still runs when JavaScript's world goes away.
template <typename Trainer>
void AbortAtExit(Napi::Env env, const std::shared_ptr<TrainerHandle<Trainer>>& handle) {
  env.AddCleanupHook([weak = std::weak_ptr<TrainerHandle<Trainer>>(handle)] {
    if (auto handle = weak.lock(); handle && handle->trainer) handle->trainer->Abort();
  });
}

inline training::PackedRow RowArgument(Napi::Object given) {
  return {.tokens = IntegersField(given, "tokens"),
          .positions = IntegersField(given, "positions"),
          .group_ids = IntegersField(given, "groupIds"),
          .parent_ids = IntegersField(given, "parentIds"),
          .logit_rows = IntegersField(given, "logitRows"),
          .target_tokens = IntegersField(given, "targetTokens")};
}

// Sets functions on `object` that share the handle.
template <typename Trainer, typename Function>
void SetMethod(Napi::Object object, const std::shared_ptr<TrainerHandle<Trainer>>& handle, const char* name,
               Function function) {
  object.Set(name, Napi::Function::New(
                       object.Env(), [handle, function](const Napi::CallbackInfo& info) -> Napi::Value {
                         if constexpr (std::is_void_v<decltype(function(info, handle))>) {
                           function(info, handle);
                           return info.Env().Undefined();
                         } else {
                           return function(info, handle);
                         }
                       },
                       name));
}

// Sets abort(), clearAbort() and close(); a computation that still runs when JavaScript's world goes away is aborted too.
template <typename Trainer>
void SetLifeMethods(Napi::Object object, const std::shared_ptr<TrainerHandle<Trainer>>& handle) {
  using Handle = std::shared_ptr<TrainerHandle<Trainer>>;
  AbortAtExit(object.Env(), handle);
  SetMethod(object, handle, "abort", [](const Napi::CallbackInfo&, const Handle& handle) {
    if (handle->trainer) handle->trainer->Abort();
  });
  SetMethod(object, handle, "clearAbort", [](const Napi::CallbackInfo& info, const Handle& handle) {
    Idle(info.Env(), handle).ClearAbort();
  });
  SetMethod(object, handle, "close", [](const Napi::CallbackInfo& info, const Handle& handle) {
    if (handle->trainer) Idle(info.Env(), handle);
    handle->trainer.reset();
  });
}

inline training::OptimizerOptions OptimizerArgument(Napi::Object given) {
  return {.learning_rate = NumberField(given, "learningRate"),
          .beta1 = NumberField(given, "beta1"),
          .beta2 = NumberField(given, "beta2"),
          .epsilon = NumberField(given, "eps"),
          .weight_decay = NumberField(given, "weightDecay"),
          .max_gradient_norm = NumberField(given, "maxGradNorm")};
}

// step(options) -> Promise<{ gradNorm, isApplied }>
template <typename Trainer>
Napi::Value StepTrainer(const Napi::CallbackInfo& info, const std::shared_ptr<TrainerHandle<Trainer>>& handle) {
  Napi::Object given = ObjectArgument(info, 0);
  struct Result {
    double norm = 0;
    bool is_applied = false;
  };
  auto result = std::make_shared<Result>();
  return RunBusy(
      info.Env(), given, handle,
      [options = OptimizerArgument(given), result](Trainer& trainer) {
        return trainer.Step(options, &result->norm, &result->is_applied);
      },
      [result](Napi::Env env) -> Napi::Value {
        Napi::Object object = Napi::Object::New(env);
        object.Set("gradNorm", result->norm);
        object.Set("isApplied", result->is_applied);
        return object;
      });
}

}  // namespace onpolicy
