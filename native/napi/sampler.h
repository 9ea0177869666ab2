// A JavaScript object of the class `Sampler` -> its native sampler.
#pragma once
#include <napi.h>

#include <memory>

#include "sampler/sampler.h"

namespace onpolicy {

// Throws when `value` is no Sampler. The sampler lives as long as the pointer, even if JavaScript drops its object.
std::shared_ptr<Sampler> UnwrapSampler(Napi::Env env, Napi::Value value);

}  // namespace onpolicy
