// The engine's threads that compute a node together -> a barrier, and a shared counter of pieces of work.
#pragma once
#ifdef _WIN32
#include <immintrin.h>

#include <atomic>
#include <thread>
#endif

#include <utility>

#include "engine-assumptions/matmul/cpu-backend.h"
#include "engine-assumptions/table/node-marks.h"

namespace onpolicy::matmul {

#ifdef _WIN32

// On Windows the engine's libraries export no such functions, so the counters are in the node, in parameters that ggml leaves zero.
class ThreadCounters {
 public:
  ThreadCounters(const ggml_compute_params* params, ggml_tensor* node)
      : threads_(params->nth), arrived_(node->op_params[kCounters]), round_(node->op_params[kCounters + 1]), piece_(node->op_params[kCounters + 2]) {}

  void SetPiece(int piece) { piece_ = piece; }
  int64_t TakePiece() { return piece_.fetch_add(1, std::memory_order_relaxed); }

  void Wait() {
    const int32_t round = round_;
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_ = 0;
      ++round_;
      return;
    }
    for (int spins = 1; round_.load(std::memory_order_acquire) == round; ++spins)
      if (spins % kSpins == 0) std::this_thread::yield();
      else _mm_pause();
  }

 private:
  static constexpr int kSpins = 4096;

  const int32_t threads_;
  const std::atomic_ref<int32_t> arrived_, round_, piece_;
};

#else

// Functions of the CPU backend's library, exported only on Linux. Set before nodes are computed.
struct ThreadFunctions {
  decltype(&::ggml_barrier) ggml_barrier = nullptr;
  decltype(&::ggml_threadpool_chunk_set) ggml_threadpool_chunk_set = nullptr;
  decltype(&::ggml_threadpool_chunk_add) ggml_threadpool_chunk_add = nullptr;
};
inline ThreadFunctions g_thread_functions;

class ThreadCounters {
 public:
  ThreadCounters(const ggml_compute_params* params, ggml_tensor*) : pool_(params->threadpool) {}

  void SetPiece(int piece) { g_thread_functions.ggml_threadpool_chunk_set(pool_, piece); }
  int64_t TakePiece() { return g_thread_functions.ggml_threadpool_chunk_add(pool_, 1); }
  void Wait() { g_thread_functions.ggml_barrier(pool_); }

 private:
  ggml_threadpool* const pool_;
};

#endif

// One per thread that computes the node.
class Team {
 public:
  // Must be constructed before the threads first wait for each other.
  Team(const ggml_compute_params* params, ggml_tensor* node) : counters_(params, node), first_(params->ith) {
    if (params->ith == 0) counters_.SetPiece(params->nth);
  }

  void Wait() { counters_.Wait(); }

  // Returns the next piece, from 0 on, that no thread has taken. The first piece of each thread is its own number.
  int64_t Next() {
    const int64_t first = std::exchange(first_, -1);
    return first >= 0 ? first : counters_.TakePiece();
  }

 private:
  ThreadCounters counters_;
  int64_t first_;
};

}  // namespace onpolicy::matmul
