// The tests' addon: all that both addons export, from the same object files, and functions of their parts for tests and benches.
#include "entry.h"

#include "addon/register.h"

namespace onpolicy {
namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  RegisterAnswers(env, exports);
  RegisterTrainer(env, exports);
  RegisterFullTrainer(env, exports);
  RegisterGrammarAddon(env, exports);
  RegisterAttentionTests(env, exports);
  RegisterGrammarTests(env, exports);
  RegisterMatmulTests(env, exports);
  RegisterPeak(env, exports);
  RegisterSamplerTests(env, exports);
  RegisterThreadBudgetTests(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(testing, Init)

}  // namespace onpolicy
