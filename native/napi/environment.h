// What one JavaScript environment (main thread or worker) keeps for the addon: its classes. Never shared between environments.
#pragma once
#include <napi.h>

#include <map>
#include <string>

namespace onpolicy {

class Environment {
 public:
  // The record of `env`, made on first use.
  static Environment& Of(Napi::Env env) {
    auto* found = env.GetInstanceData<Environment>();
    if (found) return *found;
    auto* created = new Environment;
    env.SetInstanceData(created);
    return *created;
  }

  void AddClass(const std::string& name, Napi::Function constructor) {
    classes_[name] = Napi::Persistent(constructor);
  }

  Napi::Object Construct(const std::string& name) { return classes_.at(name).New({}); }

 private:
  std::map<std::string, Napi::FunctionReference> classes_;
};

}  // namespace onpolicy
