#include "engine/thread-pool.h"

#include <map>
#include <mutex>
#include <vector>

#include "engine-assumptions/library.h"
#include "engine-assumptions/pool/computation.h"

namespace onpolicy {
namespace {

struct Pools {
  std::mutex mutex;
  std::map<int, std::vector<ggml_threadpool_t>> unused;  // by threads; each list has room for all pools, so that giving one back never fails
  size_t count = 0;                                      // number of pools
};

// Never destroyed, because their threads would have to end before the engine's library.
Pools& AllPools() {
  static Pools* pools = new Pools;
  return *pools;
}

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  const Library& api = Api();
  if (threads < 2 || !api.ggml_threadpool_new) return;
  Pools& pools = AllPools();
  std::lock_guard<std::mutex> lock(pools.mutex);
  std::vector<ggml_threadpool_t>& unused = pools.unused[threads];
  if (!unused.empty()) {
    pool_ = unused.back();
    unused.pop_back();
    return;
  }
  ggml_threadpool_params params = api.ggml_threadpool_params_default(threads);
  params.poll = 0;  // threads sleep between computations: the sampler and JavaScript need the cores
  unused.reserve(pools.count + 1);
  pool_ = api.ggml_threadpool_new(&params);
  ++pools.count;
}

ThreadPool::~ThreadPool() {
  if (!pool_ || IsLost(pool_)) return;
  Pools& pools = AllPools();
  std::lock_guard<std::mutex> lock(pools.mutex);
  pools.unused[threads_].push_back(pool_);
}

}  // namespace onpolicy
