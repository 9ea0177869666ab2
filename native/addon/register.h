// The parts of the addons that JavaScript calls: each function adds its functions and classes to `exports`.
#pragma once
#include <napi.h>

namespace onpolicy {

// Registers all parts of the main addon but the trainers, and all parts of the grammar addon.
Napi::Object RegisterAnswers(Napi::Env env, Napi::Object exports);
Napi::Object RegisterGrammarAddon(Napi::Env env, Napi::Object exports);

void RegisterEngine(Napi::Env env, Napi::Object exports);
void RegisterModel(Napi::Env env, Napi::Object exports);
void RegisterContext(Napi::Env env, Napi::Object exports);
void RegisterEmbedder(Napi::Env env, Napi::Object exports);
void RegisterRows(Napi::Env env, Napi::Object exports);
void RegisterSampler(Napi::Env env, Napi::Object exports);
void RegisterTrainer(Napi::Env env, Napi::Object exports);
void RegisterFullTrainer(Napi::Env env, Napi::Object exports);
void RegisterDrafts(Napi::Env env, Napi::Object exports);
void RegisterMedia(Napi::Env env, Napi::Object exports);

}  // namespace onpolicy
