// JavaScript classes around plan and sampler; a JavaScript object -> its sampler.
#pragma once
#include <napi.h>

#include <memory>

#include "sampler/sampler.h"

namespace onpolicy {

// `new SamplerPlan(options)`: an immutable plan, shared by the samplers of a request.
class SamplerPlanObject : public Napi::ObjectWrap<SamplerPlanObject> {
 public:
  static Napi::Function Define(Napi::Env env);

  // Throws when `value` is no SamplerPlan.
  static std::shared_ptr<const SamplerPlan> From(Napi::Value value);

  explicit SamplerPlanObject(const Napi::CallbackInfo& info);

 private:
  std::shared_ptr<const SamplerPlan> plan_;
};

// `new Sampler(plan, seed)`: the state of one sequence. `new Sampler(sampler)`: a copy of that state.
// JavaScript must not touch it while a native step uses it.
class SamplerObject : public Napi::ObjectWrap<SamplerObject> {
 public:
  static Napi::Function Define(Napi::Env env);

  // `object` must be a Sampler: see UnwrapSampler.
  static std::shared_ptr<Sampler> From(Napi::Object object);

  explicit SamplerObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value AcceptPrompt(const Napi::CallbackInfo& info);
  Napi::Value Accept(const Napi::CallbackInfo& info);
  Napi::Value Sample(const Napi::CallbackInfo& info);
  Napi::Value Prepare(const Napi::CallbackInfo& info);
  Napi::Value SampleEdited(const Napi::CallbackInfo& info);
  Napi::Value DrawMany(const Napi::CallbackInfo& info);

  std::shared_ptr<Sampler> sampler_;
  const Kernels* kernels_;
};

// Throws when `value` is no Sampler. The sampler lives as long as the pointer, even if JavaScript
// drops its object.
std::shared_ptr<Sampler> UnwrapSampler(Napi::Env env, Napi::Value value);

}  // namespace onpolicy
