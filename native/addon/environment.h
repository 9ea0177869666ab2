// The addon's state in one JavaScript environment (main thread or worker): its classes and its threads. Environments share no state.
#pragma once
#include <napi.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace onpolicy {

class Environment {
 public:
  // Returns the record of `env`, which is made on first use.
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

  // Registers a thread of `owner`, until `stop` ends it or RemoveThread reports its end.
  void AddThread(void* owner, std::function<void()> stop) { threads_[owner] = std::move(stop); }
  void RemoveThread(void* owner) { threads_.erase(owner); }

  // True after StopThreads. Long work on libuv's threads polls it, because the exiting process waits for that work.
  std::shared_ptr<const std::atomic<bool>> ending() const { return ending_; }

  // Ends all threads. process.exit runs only destructors of the engine's libraries and no cleanup hooks, so a running step would use freed
  // memory.
  void StopThreads() {
    *ending_ = true;
    while (!threads_.empty()) {
      const auto first = threads_.begin();
      const std::function<void()> stop = std::move(first->second);
      threads_.erase(first);
      stop();
    }
  }

 private:
  std::map<std::string, Napi::FunctionReference> classes_;
  std::map<void*, std::function<void()>> threads_;
  std::shared_ptr<std::atomic<bool>> ending_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace onpolicy
