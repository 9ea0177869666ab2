// Distributes the work of one graph node among its threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onpolicy::training {

// Runs `work` on pieces 0 to `count` - 1, each by the next free thread.
template <typename Work>
void Share(std::atomic<int64_t>& next, int64_t count, Work work) {
  for (int64_t piece = next++; piece < count; piece = next++) work(piece);
}

// Returns persistent memory of this thread, at a multiple of 64.
inline uint8_t* ThreadMemory(size_t bytes) {
  constexpr size_t kCacheLine = 64;
  thread_local std::vector<uint8_t> memory;
  if (memory.size() < bytes + kCacheLine) memory.resize(bytes + kCacheLine);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return reinterpret_cast<uint8_t*>((address + kCacheLine - 1) / kCacheLine * kCacheLine);
}

}  // namespace onpolicy::training
