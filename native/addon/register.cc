#include "addon/register.h"

namespace onpolicy {

Napi::Object RegisterAnswers(Napi::Env env, Napi::Object exports) {
  RegisterEngine(env, exports);
  RegisterModel(env, exports);
  RegisterContext(env, exports);
  RegisterEmbedder(env, exports);
  RegisterSampler(env, exports);
  RegisterRows(env, exports);
  RegisterMedia(env, exports);
  RegisterDrafts(env, exports);
  return exports;
}

}  // namespace onpolicy
