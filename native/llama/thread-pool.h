// A number of threads -> a pool of the engine that has them, and turns on it.
#pragma once
#include <ggml-cpu.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace onpolicy {

// Pools live as long as the process, and their threads sleep between computations. Operations of a computation end when all its
// threads have come, so two at once on the same cores would wait for the scheduler at each: there are as many pools of a size as
// the processor has cores for, contexts and trainers share them, and what shares one takes turns.
class ThreadPool {
 public:
  // The pool of a context or trainer, for its whole life: the engine stops the threads of a pool that is exchanged for another,
  // even while a third one computes with them. One that `waits_for_gpu` has it alone, as its turn may never end.
  static std::shared_ptr<ThreadPool> For(int threads, bool waits_for_gpu);

  // One computation. Turns come in the order in which they were asked for.
  class Turn {
   public:
    explicit Turn(ThreadPool& pool);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    ThreadPool& pool_;
  };

  explicit ThreadPool(ggml_threadpool_t pool) : pool_(pool) {}

  // Null where one thread is enough, or the engine has no pools.
  ggml_threadpool_t get() const { return pool_; }

 private:
  const ggml_threadpool_t pool_;
  std::mutex mutex_;
  std::condition_variable ended_;
  uint64_t next_ = 0;  // number of the next turn that is asked for
  uint64_t now_ = 0;   // of the one that has the pool
};

}  // namespace onpolicy
