// Whether weights that a thread loads are packed for matmuls of our own.
#pragma once
#include <atomic>
#include <cstddef>
#include <thread>

namespace onpolicy::matmul {

// Memory that a model's weights will fill -> given by the system on a thread of its own, while the model's vocabulary is read. Virtual machines
// take longer to give memory than weights take to be packed.
class EarlyMemory {
 public:
  // `bytes`: about as many as will be taken. Few are not worth a thread; other systems than Linux have none.
  explicit EarlyMemory(size_t bytes);
  ~EarlyMemory();
  EarlyMemory(const EarlyMemory&) = delete;
  EarlyMemory& operator=(const EarlyMemory&) = delete;

  // Zeros, once; they are the caller's, as those of TakeSystemMemory. `bytes`: a multiple of huge pages. Null: there are not so many.
  void* Take(size_t bytes);
  // Before what was taken is freed.
  void Stop();

 private:
  std::byte* memory_ = nullptr;
  const size_t reserved_;
  size_t taken_ = 0;
  std::atomic<size_t> end_;
  std::thread thread_;
};

// While it lives, weights that this thread loads are packed, if `packs`. `bytes`: about as many as they have.
class Packing {
 public:
  Packing(bool packs, size_t bytes);
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  // Of the matrices that were packed so far.
  size_t packed_bytes() const { return packed_bytes_; }

 private:
  friend struct WeightBuffer;
  size_t packed_bytes_ = 0;
  EarlyMemory memory_;
  Packing* const outer_;
};

}  // namespace onpolicy::matmul
