#include "engine-assumptions/pool/computation.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/guarded.h"
#include "engine-assumptions/table/backend-tables.h"

namespace onpolicy {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Time that the computing threads have to reach their next node. Threads that do not are waiting at a barrier inside a node.
constexpr milliseconds kForNode{20};
// Time that a thread may take to return from a barrier that all have passed.
constexpr milliseconds kForReturn{1000};
// Time that a node may take. If nothing changes for longer, the computing threads have reached the end of the graph.
constexpr milliseconds kForGraph{10000};

// This thread's role in the last computation that it took part in.
struct Member {
  ggml_threadpool_t pool = nullptr;
  int thread = 0, threads = 0;
};
thread_local Member t_member;

// The pool that this thread last found usable, and the number of lost pools then. It stays usable until another pool is lost.
struct Usable {
  ggml_threadpool_t pool = nullptr;
  int lost = 0;
};
thread_local Usable t_usable;
thread_local bool t_is_first = false;  // true inside a computation that this thread has begun

// A computation that its threads are leaving.
struct Ending {
  int threads = 0;
  int left = 0;             // threads that have stopped computing
  int arrived = 0;          // arrivals at barriers on their behalf which have not been passed
  bool has_result = false;  // the first thread has come to the end of the graph
  bool is_done = false;
  char message[512] = {};

  bool is_over() const { return has_result || left >= threads; }
};

std::mutex g_mutex;
std::condition_variable g_changed;
std::map<ggml_threadpool_t, Ending> g_endings;  // stay for the life of their pools, which are lost
std::atomic<int> g_lost{0};

void (*g_barrier)(ggml_threadpool_t) = nullptr;
ggml_backend_t (*g_new_backend)(ggml_backend_dev_t, const char*) = nullptr;
std::atomic<ggml_status (*)(ggml_backend_t, ggml_cgraph*)> g_compute{nullptr};

using Lock = std::unique_lock<std::mutex>;

// Starts threads that arrive at the barrier until `count` arrivals are pending.
void Arrive(ggml_threadpool_t pool, Ending& ending, int count) {
  while (ending.arrived < count) {
    ++ending.arrived;
    std::thread([pool, &ending] {
      g_barrier(pool);
      const Lock lock(g_mutex);
      --ending.arrived;
      g_changed.notify_all();
    }).detach();
  }
}

// Arrives at barriers on behalf of the threads that have left, until all others have left too, or the graph has ended.
void End(ggml_threadpool_t pool, Ending& ending) {
  Lock lock(g_mutex);
  auto last_change = Clock::now();
  for (int left = 0, arrived = 0; !ending.is_over() && Clock::now() - last_change < kForGraph;) {
    if (left != ending.left || arrived != ending.arrived) last_change = Clock::now();
    left = ending.left;
    arrived = ending.arrived;
    if (!g_changed.wait_for(lock, kForNode, [&] { return ending.is_over(); })) Arrive(pool, ending, ending.left);
  }
  const auto all_passed = [&] { return ending.arrived == 0; };
  if (!g_changed.wait_for(lock, kForReturn, all_passed)) {  // a remaining barrier, which no thread reaches any more
    Arrive(pool, ending, ending.threads);
    g_changed.wait_for(lock, kForReturn, all_passed);
  }
  ending.is_done = true;
  g_changed.notify_all();
}

[[noreturn]] void Leave(const char* message) {
  const Member member = t_member;
  char text[sizeof(Ending::message)];
  {
    Lock lock(g_mutex);
    Ending& ending = g_endings[member.pool];
    if (ending.threads == 0) {
      ending.threads = member.threads;
      std::snprintf(ending.message, sizeof ending.message, "%s", message);
      ++g_lost;
      std::thread(End, member.pool, std::ref(ending)).detach();
    }
    ++ending.left;
    g_changed.notify_all();
    if (member.thread == 0) g_changed.wait(lock, [&] { return ending.is_done; });
    std::snprintf(text, sizeof text, "%s", ending.message);
  }
  if (member.thread == 0) LeaveEngine(text);
  for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

// Throws if threads have left the computation that this thread has just completed.
void RequireAll() {
  if (g_lost == 0) return;
  Lock lock(g_mutex);
  const auto found = g_endings.find(t_member.pool);
  if (found == g_endings.end()) return;
  found->second.has_result = true;
  g_changed.notify_all();
  g_changed.wait(lock, [&] { return found->second.is_done; });
  throw Failure("BACKEND_FAILED", found->second.message);
}

ggml_status Compute(ggml_backend_t backend, ggml_cgraph* graph) {
  if (!IsInEngine()) return g_compute.load()(backend, graph);
  t_member = {};
  t_is_first = true;
  const ggml_status status = InCallback(
      [&] {
        const ggml_status computed = Guard([&] { return g_compute.load()(backend, graph); });
        RequireAll();
        return computed;
      },
      GGML_STATUS_FAILED);
  t_is_first = false;
  return status;
}

ggml_backend_t NewBackend(ggml_backend_dev_t device, const char* parameters) {
  ggml_backend_t backend = g_new_backend(device, parameters);
  if (!backend) return nullptr;
  g_compute = backend->iface.graph_compute;  // the same for all backends
  backend->iface.graph_compute = Compute;
  return backend;
}

}  // namespace

void GuardComputations(ggml_backend_dev_t cpu) {
  g_new_backend = cpu->iface.init_backend;
  std::atomic_ref(cpu->iface.init_backend).store(NewBackend);
}

void SetBarrier(void (*barrier)(ggml_threadpool_t)) { g_barrier = barrier; }

void SeeNode(ggml_threadpool_t pool, int thread, int threads) {
  t_member = {pool, thread, threads};
  const int lost = g_lost.load(std::memory_order_relaxed);
  if (lost == 0 || threads == 1 || (t_usable.pool == pool && t_usable.lost == lost)) return;
  if (IsLost(pool)) Leave("");
  t_usable = {pool, lost};
}

bool LeaveComputation(const char* message) {
  const bool is_other = t_member.thread > 0;  // threads of a pool only compute
  if (!t_is_first && !is_other) return true;
  if (t_member.threads <= 1) LeaveEngine(message);  // computing alone, or before the first node
  if (g_barrier) Leave(message);
  return false;
}

bool IsLost(ggml_threadpool_t pool) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  return g_endings.count(pool) > 0;
}

}  // namespace onpolicy
