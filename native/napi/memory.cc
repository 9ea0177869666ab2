// Freed memory of this process -> returned to the system.
#include <napi.h>

#include "napi/async-task.h"
#include "napi/register.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace onpolicy {
namespace {

// returnMemory() -> Promise<void>. glibc retains freed blocks of up to 32 MB, and most weights are that small.
Napi::Value ReturnMemory(const Napi::CallbackInfo& info) {
  return AsyncTask::Run(
      info.Env(), Napi::Object::New(info.Env()),
      [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
        return Status{};
      },
      [](Napi::Env env) { return env.Undefined(); });
}

}  // namespace

void RegisterMemory(Napi::Env env, Napi::Object exports) {
  exports.Set("returnMemory", Napi::Function::New(env, ReturnMemory));
}

}  // namespace onpolicy
