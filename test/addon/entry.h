// One line per file of the tests' addon.
#pragma once
#include <napi.h>

namespace onpolicy {

void RegisterAttentionTests(Napi::Env env, Napi::Object exports);
void RegisterGrammarTests(Napi::Env env, Napi::Object exports);
void RegisterMatmulTests(Napi::Env env, Napi::Object exports);
void RegisterPeak(Napi::Env env, Napi::Object exports);
void RegisterSamplerTests(Napi::Env env, Napi::Object exports);
void RegisterThreadBudgetTests(Napi::Env env, Napi::Object exports);

}  // namespace onpolicy
