// Whether weights that a thread loads are packed for matmuls of our own.
#pragma once
#include <cstddef>

namespace onpolicy::matmul {

enum class Packs { kNone, kQuantized, kAll };  // kAll: F16, BF16 and F32 weights, too

// While it lives, weights of these types that this thread loads are packed.
class Packing {
 public:
  explicit Packing(Packs packs);
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  Packs packs() const { return packs_; }
  // Of the matrices that were packed so far.
  size_t packed_bytes() const { return packed_bytes_; }

 private:
  friend struct WeightBuffer;
  const Packs packs_;
  size_t packed_bytes_ = 0;
  Packing* const outer_;
};

}  // namespace onpolicy::matmul
