// Sets of kernels, by names, for what checks them.
#pragma once
#include <napi.h>

#include <string>

#include "addon/arguments.h"

namespace onpolicy {

// The names of the sets that this processor runs, in their order.
template <typename Sets>
Napi::Array SupportedSets(Napi::Env env, const Sets& sets) {
  Napi::Array names = Napi::Array::New(env);
  for (const auto* kernels : sets)
    if (kernels->is_supported()) names.Set(names.Length(), kernels->name);
  return names;
}

// The set that `options` name. `lister`: the function that gives the names.
template <typename Sets>
const auto* ReadKernels(const Fields& options, const Sets& sets, const std::string& lister) {
  const std::string name = options.Text("kernels");
  for (const auto* kernels : sets)
    if (name == kernels->name && kernels->is_supported()) return kernels;
  RefuseField(options.object().Env(), "kernels", "a name of " + lister);
}

}  // namespace onpolicy
