// Memory of one decode. It is bounded, and freed as a whole when the decode ends, also on failure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>

namespace onpolicy {

class Arena {
 public:
  explicit Arena(uint64_t limit) : limit_(limit) {}
  ~Arena() {
    for (const auto& [block, size] : sizes_) std::free(block);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void Limit(uint64_t bytes) { limit_ = bytes; }

  // Returns null beyond the limit, as malloc does if memory is exhausted.
  void* Allocate(size_t size) { return Grow(nullptr, size); }

  void* Grow(void* block, size_t size) {
    const auto found = sizes_.find(block);
    const size_t held = found == sizes_.end() ? 0 : found->second;
    if (size > limit_ || used_ - held + size > limit_) return nullptr;
    void* grown = std::realloc(block, size == 0 ? 1 : size);
    if (!grown) return nullptr;
    if (found != sizes_.end()) sizes_.erase(found);
    sizes_[grown] = size;
    used_ += size - held;
    return grown;
  }

  void Free(void* block) {
    const auto found = sizes_.find(block);
    if (found == sizes_.end()) return;
    used_ -= found->second;
    sizes_.erase(found);
    std::free(block);
  }

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
  std::unordered_map<void*, size_t> sizes_;
};

}  // namespace onpolicy
