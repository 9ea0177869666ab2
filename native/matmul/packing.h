// Whether weights that a thread loads are packed for matmuls of our own.
#pragma once
#include <cstddef>

namespace onpolicy::matmul {

// While it lives, weights that this thread loads are packed, if `packs`.
class Packing {
 public:
  explicit Packing(bool packs);
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  // Of the matrices that were packed so far.
  size_t packed_bytes() const { return packed_bytes_; }

 private:
  friend struct WeightBuffer;
  size_t packed_bytes_ = 0;
  Packing* const outer_;
};

}  // namespace onpolicy::matmul
