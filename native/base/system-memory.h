// Bytes -> memory of the system, filled with zeros. A page takes memory only once it is read or written.
#pragma once
#include <cstddef>

#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace onpolicy {

// Returns whole pages, or null if there is not enough memory.
inline void* TakeSystemMemory(size_t bytes) {
#ifdef _WIN32
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
#else
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
#endif
}

constexpr size_t kHugePage = size_t{2} << 20;
inline size_t RoundedToHugePages(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

// Returns huge pages on Linux, whole pages elsewhere. First writes then enter the system 512 times less often, and addresses are translated
// faster.
inline void* TakeHugePages(size_t bytes) {
  void* memory = TakeSystemMemory(bytes);
#ifdef __linux__
  if (memory) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

inline void FreeSystemMemory(void* memory, [[maybe_unused]] size_t bytes) {
#ifdef _WIN32
  VirtualFree(memory, 0, MEM_RELEASE);
#else
  munmap(memory, bytes);
#endif
}

}  // namespace onpolicy
