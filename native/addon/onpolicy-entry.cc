// The entry of onpolicy.node.
#include "addon/register.h"

namespace onpolicy {
namespace {

Napi::Object Register(Napi::Env env, Napi::Object exports) {
  RegisterTrainer(env, exports);
  RegisterFullTrainer(env, exports);
  return RegisterAnswers(env, exports);
}

}  // namespace

NODE_API_MODULE(onpolicy, Register)

}  // namespace onpolicy
