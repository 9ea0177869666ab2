// A number of threads -> a pool of the engine with that many.
#pragma once
#include <ggml-cpu.h>

namespace onpolicy {

// The pool of a context or trainer, for its whole life: when a pool is exchanged for another, the engine stops its threads even while
// another user computes with them. Concurrent computations share the cores by the system's scheduling, so that a stream continues beside
// the long prompt of another model. Pools are kept for reuse until the process ends; their threads sleep between computations.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Returns null if one thread is enough, or the engine has no pools.
  ggml_threadpool_t get() const { return pool_; }

 private:
  const int threads_;
  ggml_threadpool_t pool_ = nullptr;
};

}  // namespace onpolicy
