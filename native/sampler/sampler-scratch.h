// Buffers that one sampling thread reuses from row to row. Not thread-safe: one scratch per thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampler/kernels.h"

namespace onpolicy {

// An array that only grows. It is not initialised, and loses its contents when it grows.
template <class T>
class Buffer {
 public:
  // Returns room for at least `count` elements.
  T* Reserve(size_t count) {
    if (count > capacity_) {
      data_ = std::make_unique_for_overwrite<T[]>(count);
      capacity_ = count;
    }
    return data_.get();
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  std::unique_ptr<T[]> data_;
  size_t capacity_ = 0;
};

// Tokens that may be drawn, in order of id, as parallel arrays.
struct Candidates {
  Buffer<int32_t> ids;
  Buffer<float> values;   // logits after masks, bias and penalties
  Buffer<float> weights;  // proportional to the probabilities
  size_t count = 0;
};

// A token whose logit differs from the model's.
struct AdjustedToken {
  int32_t id;
  float value;
};

struct SamplerScratch {
  explicit SamplerScratch(const Kernels& which = BestKernels()) : kernels(&which) {}

  const Kernels* kernels;

  // Written by ScanRow (row-scan.h).
  Buffer<float> last_tile;        // (tile) padded copy of the row's end
  Buffer<float> finite_row;       // (vocab) the row with +infinity replaced, when it holds one
  Buffer<float> maxima;           // (blocks) of the raw logits
  Buffer<float> masked_maxima;    // (blocks) of the allowed logits
  Buffer<float> sums;             // (blocks) of weights, relative to the tile's reference
  Buffer<float> tile_references;  // (tiles)

  // Written by Sampler and the stages after the scan.
  std::vector<uint32_t> mask;           // (2 * blocks) tokens whose raw logit counts
  std::vector<AdjustedToken> adjusted;  // tokens with a bias or a penalty, in order of id: not in `mask`
  std::vector<AdjustedToken> penalties; // of DRY, in order of id
  std::vector<size_t> lengths;          // (tokens) of repetitions
  std::vector<float> distances;         // (adjusted) to the reference of the token's tile
  std::vector<double> tile_masses;      // (tiles)
  Candidates candidates;                // of the draw
  Candidates best;                      // of the log-probabilities
  std::vector<float> values;            // for selecting the k-th largest
  Buffer<double> masses;                // histogram of top_p
  std::vector<uint32_t> active;         // indices into candidates
  std::vector<uint64_t> keys;           // for sorting, see logit-values.h
  std::vector<double> probabilities;    // (candidates) before adaptive-p
  Buffer<float> processed_row;          // (vocab)
};

}  // namespace onpolicy
