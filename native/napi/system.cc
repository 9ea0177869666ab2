// What this process asks of its system: memory given back, cores to compute on.
#include <napi.h>

#include "napi/arguments.h"
#include "napi/async-task.h"
#include "napi/register.h"
#include "threads/performance-cores.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace onpolicy {
namespace {

// returnMemory() -> Promise<void>. glibc retains freed blocks of up to 32 MB, and most weights are that small.
Napi::Value ReturnMemory(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(info.Env(), [] {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
  });
}

// performanceCores(devices) -> number; 0 where the system does not tell its cores apart.
Napi::Value CountPerformanceCores(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), PerformanceCores(ReadText(info[0], "devices")));
}

}  // namespace

void RegisterSystem(Napi::Env env, Napi::Object exports) {
  exports.Set("performanceCores", Napi::Function::New(env, CountPerformanceCores));
  exports.Set("returnMemory", Napi::Function::New(env, ReturnMemory));
}

}  // namespace onpolicy
