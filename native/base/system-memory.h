// Bytes -> memory of the system: zeros, that take no memory until they are read or written.
#pragma once
#include <cstddef>

#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#endif

namespace onpolicy {

// Whole pages; null: there is none.
inline void* TakeSystemMemory(size_t bytes) {
#ifdef _WIN32
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
#else
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
#endif
}

inline void FreeSystemMemory(void* memory, [[maybe_unused]] size_t bytes) {
#ifdef _WIN32
  VirtualFree(memory, 0, MEM_RELEASE);
#else
  munmap(memory, bytes);
#endif
}

}  // namespace onpolicy
