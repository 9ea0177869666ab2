#include "llama/thread-pool.h"

#include <algorithm>
#include <limits>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "llama/library.h"

namespace onpolicy {
namespace {

struct Pools {
  std::mutex mutex;
  std::map<std::pair<int, bool>, std::vector<std::shared_ptr<ThreadPool>>> known;  // by threads, and whether they wait for a GPU
};

// Never destroyed: their threads would have to end before the engine's library.
Pools& AllPools() {
  static Pools* pools = new Pools;
  return *pools;
}

size_t MostPools(int threads, bool waits_for_gpu) {
  if (waits_for_gpu) return std::numeric_limits<size_t>::max();
  return std::max(std::thread::hardware_concurrency() / static_cast<unsigned>(threads), 1u);
}

}  // namespace

std::shared_ptr<ThreadPool> ThreadPool::For(int threads, bool waits_for_gpu) {
  const Library& api = Api();
  if (threads < 2 || !api.ggml_threadpool_new) return std::make_shared<ThreadPool>(nullptr);
  Pools& pools = AllPools();
  std::lock_guard<std::mutex> lock(pools.mutex);
  std::vector<std::shared_ptr<ThreadPool>>& known = pools.known[{threads, waits_for_gpu}];
  const auto least = std::min_element(known.begin(), known.end(),
                                      [](const auto& a, const auto& b) { return a.use_count() < b.use_count(); });
  const bool has_unused = least != known.end() && least->use_count() == 1;
  if (has_unused || known.size() >= MostPools(threads, waits_for_gpu)) return *least;
  ggml_threadpool_params params = api.ggml_threadpool_params_default(threads);
  params.poll = 0;  // threads sleep between computations: the sampler and JavaScript need the cores
  known.push_back(std::make_shared<ThreadPool>(api.ggml_threadpool_new(&params)));
  return known.back();
}

ThreadPool::Turn::Turn(ThreadPool& pool) : pool_(pool) {
  if (!pool_.pool_) return;
  std::unique_lock<std::mutex> lock(pool_.mutex_);
  const uint64_t number = pool_.next_++;
  pool_.ended_.wait(lock, [&] { return pool_.now_ == number; });
}

ThreadPool::Turn::~Turn() {
  if (!pool_.pool_) return;
  {
    std::lock_guard<std::mutex> lock(pool_.mutex_);
    ++pool_.now_;
  }
  pool_.ended_.notify_all();
}

}  // namespace onpolicy
