// The trainer's device, with the CPU for operations that it lacks: memory on it, and graphs that run on it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread-budget.h"
#include "engine-assumptions/library.h"
#include "engine/thread-pool.h"

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
  // Allocates memory for all slots. Reuses earlier memory if it is large enough, because fresh pages are slow.
  void Allocate();
  // Removes all slots.
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
  // `device` is a name as ggml reports it, or empty for the CPU. `threads` is the number of CPU threads.
  static std::unique_ptr<Device> Open(const std::string& device, int threads);
  ~Device();

  bool is_cpu() const { return backends_.size() == 1; }
  const std::string& name() const { return name_; }
  int threads() const { return threads_; }
  // Selects all threads or one, which is faster for small work. Applies to graphs that run afterwards.
  void UseThreads(bool all) { uses_all_ = all; }
  // Calls work(threads), which may start that many threads.
  template <typename Work>
  auto OnCores(const Work& work) {
    const ThreadBudget::Share share(*share_, uses_all_ ? threads_ : 1);
    return work(share.threads());
  }
  ggml_backend_buffer_type_t memory() const { return memory_; }
  // Allocates and runs a graph. Fails with ABORTED after `Abort` was called.
  void Run(Graph& graph);
  size_t scratch_bytes() const;
  // Returns the bytes that the temporary results of a graph would take. Its slots may be of arenas without memory.
  size_t MeasureScratch(Graph& graph) const;

  void Abort() { aborted_ = true; }
  void ClearAbort() { aborted_ = false; }
  bool aborted() const { return aborted_; }

 private:
  // Creates a scheduler with room for a graph of that many tensors, unless the current one has it.
  void MakeRoom(size_t tensors);

  std::vector<ggml_backend_t> backends_;  // the device first, the CPU last
  ggml_backend_sched_t scheduler_ = nullptr;
  size_t room_ = 0;  // tensors that the scheduler has room for
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
