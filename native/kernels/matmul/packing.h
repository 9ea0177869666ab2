// Decides whether weights that a thread loads are packed for this library's matmuls.
#pragma once
#include <atomic>
#include <cstddef>
#include <thread>

namespace onpolicy::matmul {

// Populates memory for a model's weights on a separate thread, while the model's vocabulary is read. On virtual machines populating memory
// takes longer than packing weights.
class EarlyMemory {
 public:
  // `bytes` is about the number that will be taken. A small number is not worth a thread. Does nothing on systems other than Linux.
  explicit EarlyMemory(size_t bytes);
  ~EarlyMemory();
  EarlyMemory(const EarlyMemory&) = delete;
  EarlyMemory& operator=(const EarlyMemory&) = delete;

  // Returns zeroed memory, once, which the caller owns as that of TakeSystemMemory. `bytes` is a multiple of huge pages. Null if there is not
  // enough.
  void* Take(size_t bytes);
  // Must be called before taken memory is freed.
  void Stop();

 private:
  std::byte* memory_ = nullptr;
  const size_t reserved_;
  size_t taken_ = 0;
  std::atomic<size_t> end_;
  std::thread thread_;
};

// While it exists, weights that this thread loads are packed, if `packs`. `bytes` is their approximate size.
class Packing {
 public:
  Packing(bool packs, size_t bytes);
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  // Bytes of the matrices that have been packed so far.
  size_t packed_bytes() const { return packed_bytes_; }

 private:
  friend struct WeightBuffer;
  size_t packed_bytes_ = 0;
  EarlyMemory memory_;
  Packing* const outer_;
};

}  // namespace onpolicy::matmul
