// A number of threads -> a pool of the engine that has them.
#pragma once
#include <ggml-cpu.h>

namespace onpolicy {

// The pool of a context or trainer, for its whole life: the engine stops the threads of a pool that is exchanged for another, even
// while a third one computes with them. What computes at once shares the cores as the system sees fit, so that a stream goes on
// beside the long prompt of another model. Pools live as long as the process, for what comes next; their threads sleep between
// computations.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Null where one thread is enough, or the engine has no pools.
  ggml_threadpool_t get() const { return pool_; }

 private:
  const int threads_;
  ggml_threadpool_t pool_ = nullptr;
};

}  // namespace onpolicy
