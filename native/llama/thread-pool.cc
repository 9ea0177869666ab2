#include "llama/thread-pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "llama/library.h"

namespace onpolicy {
namespace {

struct Pools {
  std::mutex mutex;
  std::map<int, std::vector<ggml_threadpool_t>> idle;  // by threads; the last one was used last
};

// Never destroyed: their threads would have to end before the engine's library.
Pools& AllPools() {
  static Pools* pools = new Pools;
  return *pools;
}

}  // namespace

ThreadPool::ThreadPool(int threads, ggml_threadpool_t preferred) : threads_(threads) {
  const Library& api = Api();
  if (threads < 2 || !api.ggml_threadpool_new) return;
  Pools& pools = AllPools();
  std::lock_guard<std::mutex> lock(pools.mutex);
  std::vector<ggml_threadpool_t>& idle = pools.idle[threads];
  if (idle.empty()) {
    ggml_threadpool_params params = api.ggml_threadpool_params_default(threads);
    params.poll = 0;  // threads sleep between computations: the sampler and JavaScript need the cores
    pool_ = api.ggml_threadpool_new(&params);
    return;
  }
  const auto same = std::find(idle.begin(), idle.end(), preferred);
  const auto taken = same == idle.end() ? idle.end() - 1 : same;
  pool_ = *taken;
  idle.erase(taken);
}

ThreadPool::~ThreadPool() {
  if (!pool_) return;
  Pools& pools = AllPools();
  std::lock_guard<std::mutex> lock(pools.mutex);
  pools.idle[threads_].push_back(pool_);
}

}  // namespace onpolicy
