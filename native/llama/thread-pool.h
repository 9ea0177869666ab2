// A number of threads -> a pool of the engine that has them, lent to one computation at a time.
#pragma once
#include <ggml-cpu.h>

namespace onpolicy {

// A pool while this lives. Pools live as long as the process, and their threads sleep between computations: contexts and trainers that
// take turns share one, those that compute at once have one each.
class ThreadPool {
 public:
  // `preferred`: what an earlier one gave.
  ThreadPool(int threads, ggml_threadpool_t preferred);
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
