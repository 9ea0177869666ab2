// Where the trainer computes: one device (and the CPU for what it lacks), memory on it, and graphs that run on it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/library.h"
#include "llama/thread-pool.h"
#include "threads/thread-budget.h"

namespace onpolicy::training {

class Device;

// One block of device memory, divided into slots that are reserved first and allocated together.
class Arena {
 public:
  explicit Arena(Device* device) : device_(device) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns the slot's offset.
  size_t Reserve(size_t bytes);
  // Memory for all slots. What was allocated before is used again when it is enough: fresh pages are slow.
  void Allocate();
  // Gives up all slots.
  void Clear() { bytes_ = 0; }
  size_t allocated_bytes() const { return allocated_bytes_; }
  size_t reserved_bytes() const { return bytes_; }
  ggml_backend_buffer_t buffer() const { return buffer_; }
  void* AddressOf(size_t offset) const;

 private:
  Device* device_;
  ggml_backend_buffer_t buffer_ = nullptr;
  size_t bytes_ = 0;  // of all slots
  size_t allocated_bytes_ = 0;
};

// A place in an arena.
struct Slot {
  const Arena* arena = nullptr;
  size_t offset = 0;
};

class Graph;

class Device {
 public:
  // `device`: a name as ggml reports it, empty for the CPU. `threads`: of the CPU.
  static std::unique_ptr<Device> Open(const std::string& device, int threads);
  ~Device();

  bool is_cpu() const { return backends_.size() == 1; }
  const std::string& name() const { return name_; }
  int threads() const { return threads_; }
  // Work too small to share runs faster on one thread. Matters to graphs run from now on.
  void UseThreads(bool all) { uses_all_ = all; }
  ggml_backend_buffer_type_t memory() const { return memory_; }
  // Allocates and runs a graph. Fails with ABORTED once `Abort` was called.
  void Run(Graph& graph);
  size_t scratch_bytes() const;
  // What the temporary results of a graph would take, whose slots may be of arenas without memory.
  size_t MeasureScratch(Graph& graph) const;

  void Abort() { aborted_ = true; }
  void ClearAbort() { aborted_ = false; }
  bool aborted() const { return aborted_; }

 private:
  std::vector<ggml_backend_t> backends_;  // the device first, the CPU last
  ggml_backend_sched_t scheduler_ = nullptr;
  ggml_backend_buffer_type_t memory_ = nullptr;
  std::string name_;
  int threads_ = 1;
  bool uses_all_ = true;
  std::unique_ptr<ThreadPool> pool_;  // of the CPU
  std::unique_ptr<ThreadBudget::User> share_;
  std::atomic<bool> aborted_{false};
  bool is_lost_ = false;  // a GPU failed while it computed
};

}  // namespace onpolicy::training
