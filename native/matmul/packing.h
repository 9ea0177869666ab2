// Whether weights that a thread loads are packed for matmuls of our own.
#pragma once
#include <cstddef>

#include "matmul/early-memory.h"

namespace onpolicy::matmul {

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
