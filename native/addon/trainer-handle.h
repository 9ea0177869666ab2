// An opened trainer of either kind, shared by its JavaScript functions. One computation at a time, off the JavaScript thread.
#pragma once
#include <atomic>
#include <memory>

#include "addon/arguments.h"
#include "addon/async-task.h"
#include "kernels/adamw.h"
#include "trainer/row.h"

namespace onpolicy {

template <typename Trainer>
struct TrainerHandle {
  std::unique_ptr<Trainer> trainer;
  std::atomic<bool> is_busy{false};
};

template <typename Trainer, typename Options>
std::shared_ptr<TrainerHandle<Trainer>> OpenHandle(const Options& options) {
  auto handle = std::make_shared<TrainerHandle<Trainer>>();
  handle->trainer = Trainer::Open(options);
  return handle;
}

// Returns the trainer. Throws if it is closed or computing.
template <typename Trainer>
Trainer& Idle(Napi::Env env, const std::shared_ptr<TrainerHandle<Trainer>>& handle) {
  if (!handle->trainer) throw ToError(env, Status::Fail("CLOSED", "the trainer is closed"));
  if (handle->is_busy) Refuse(env, "the trainer is computing: it takes one call at a time");
  return *handle->trainer;
}

// Runs `work` on another thread. The handle is busy until it ends.
template <typename Trainer, typename Work, typename... Finish>
Napi::Promise RunBusy(Napi::Env env, const std::shared_ptr<TrainerHandle<Trainer>>& handle, Work work, Finish... finish) {
  Trainer& trainer = Idle(env, handle);
  auto run = [handle, &trainer, work = std::move(work)] { return work(trainer); };
  return AsyncTask::Run(env, Busy(&handle->is_busy, std::move(run)), std::move(finish)...);
}

// Packed rows and optimizer options as JavaScript gives them.
inline training::PackedRow RowArgument(const Fields& given) {
  return {.tokens = given.Integers("tokens"),
          .positions = given.Integers("positions"),
          .group_ids = given.Integers("groupIds"),
          .parent_ids = given.Integers("parentIds"),
          .logit_rows = given.Integers("logitRows"),
          .target_tokens = given.Integers("targetTokens"),
          .temperatures = given.FloatsOrNone("temperatures"),
          .experts = given.IntegersOrNone("routedExperts")};
}

inline training::OptimizerOptions OptimizerArgument(const Fields& given) {
  return {.learning_rate = given.Number("learningRate"),
          .beta1 = given.Number("beta1"),
          .beta2 = given.Number("beta2"),
          .epsilon = given.Number("eps"),
          .weight_decay = given.Number("weightDecay"),
          .max_gradient_norm = given.Number("maxGradNorm")};
}

// Sets a function on `object` that shares the handle.
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

// Sets abort(), clearAbort() and close(), and aborts a running computation when the environment ends.
template <typename Trainer>
void SetLifeMethods(Napi::Object object, const std::shared_ptr<TrainerHandle<Trainer>>& handle) {
  using Handle = std::shared_ptr<TrainerHandle<Trainer>>;
  object.Env().AddCleanupHook([weak = std::weak_ptr<TrainerHandle<Trainer>>(handle)] {
    if (auto handle = weak.lock(); handle && handle->trainer) handle->trainer->Abort();
  });
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

// step(options) -> Promise<{ gradNorm, isApplied }>
template <typename Trainer>
Napi::Value StepTrainer(const Napi::CallbackInfo& info, const std::shared_ptr<TrainerHandle<Trainer>>& handle) {
  return RunBusy(
      info.Env(), handle, [options = OptimizerArgument(Fields(info[0]))](Trainer& trainer) { return trainer.Step(options); },
      [](Napi::Env env, const training::StepResult& result) {
        return ObjectOf(env, "gradNorm", result.gradient_norm, "isApplied", result.is_applied);
      });
}

}  // namespace onpolicy
