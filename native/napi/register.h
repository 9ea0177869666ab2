// One line per part of the addon that answers: each adds its functions and classes to `exports`.
#pragma once
#include <napi.h>

namespace onpolicy {

void RegisterAttention(Napi::Env env, Napi::Object exports);
void RegisterEngine(Napi::Env env, Napi::Object exports);
void RegisterRows(Napi::Env env, Napi::Object exports);
void RegisterSampler(Napi::Env env, Napi::Object exports);
void RegisterTrainer(Napi::Env env, Napi::Object exports);
void RegisterFullTrainer(Napi::Env env, Napi::Object exports);
void RegisterDrafts(Napi::Env env, Napi::Object exports);
void RegisterMedia(Napi::Env env, Napi::Object exports);
void RegisterMatmul(Napi::Env env, Napi::Object exports);
void RegisterSystem(Napi::Env env, Napi::Object exports);

}  // namespace onpolicy
