// Whether weights that a thread loads are packed for products of our own.
#pragma once
#include <cstddef>

namespace onpolicy::products {

// The weights that are packed.
enum class Packed {
  kNone,
  kReady,  // types whose packed values are multiplied as they lie: faster for any number of tokens
  kAll,    // types that are expanded first as well: slower for a single token, faster for many
};

// While it lives, weights that this thread loads are packed.
class Packing {
 public:
  explicit Packing(Packed types);
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  Packed types() const { return types_; }
  // Of the matrices that were packed so far.
  size_t packed_bytes() const { return packed_bytes_; }

 private:
  friend struct WeightBuffer;
  const Packed types_;
  size_t packed_bytes_ = 0;
  Packing* const outer_;
};

}  // namespace onpolicy::products
