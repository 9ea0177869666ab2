// What one JavaScript environment (main thread or worker) keeps for the addon: its classes and what runs for it. Never
// shared between environments.
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

  // `owner` has a thread of its own until `stop` is called, or until it says itself that the thread has ended.
  void AddThread(void* owner, std::function<void()> stop) { threads_[owner] = std::move(stop); }
  void RemoveThread(void* owner) { threads_.erase(owner); }

  // Becomes true in StopThreads: long work on libuv's threads, which the process waits for when it exits, looks at it.
  std::shared_ptr<const std::atomic<bool>> ending() const { return ending_; }

  // Ends all threads. process.exit runs no cleanup hooks: it goes straight on to the destructors of the engine's
  // libraries, and a step that still runs would use what they have freed.
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
