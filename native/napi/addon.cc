// The addon's entry: one registration function per part.
#include <napi.h>

#include "napi/register.h"

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("napiVersion", Napi::Number::New(env, NAPI_VERSION));
  onpolicy::RegisterEngine(env, exports);
  onpolicy::RegisterSampler(env, exports);
  onpolicy::RegisterRows(env, exports);
  onpolicy::RegisterTrainer(env, exports);
  onpolicy::RegisterFullTrainer(env, exports);
  onpolicy::RegisterMedia(env, exports);
  onpolicy::RegisterAttention(env, exports);
  onpolicy::RegisterMatmul(env, exports);
  onpolicy::RegisterDrafts(env, exports);
  onpolicy::RegisterSystem(env, exports);
  return exports;
}

NODE_API_MODULE(onpolicy, Init)
