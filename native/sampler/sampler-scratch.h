// Buffers that one sampling thread reuses from row to row. Not thread-safe: one scratch per thread.
#pragma once
#include <cstdint>
#include <vector>

#include "sampler/kernels.h"

namespace onpolicy {

// Tokens still in play, in order of id: parallel arrays.
struct Candidates {
  std::vector<int32_t> ids;
  std::vector<float> values;   // logits after masks, bias and penalties
  std::vector<float> weights;  // proportional to the probabilities
  size_t count = 0;
};

struct SamplerScratch {
  explicit SamplerScratch(const Kernels& which = BestKernels()) : kernels(&which) {}

  const Kernels* kernels;

  // Written by ScanRow (row-scan.h).
  std::vector<float> last_tile;        // (tile) padded copy of the row's end
  std::vector<float> finite_row;       // (vocab) the row with +infinity replaced, when it holds one
  std::vector<float> maxima;           // (blocks) of the raw logits
  std::vector<float> masked_maxima;    // (blocks) of the allowed logits
  std::vector<float> sums;             // (blocks) of weights, relative to the tile's reference
  std::vector<float> tile_references;  // (tiles)

  // Written by Sampler.
  std::vector<uint32_t> mask;  // (2 * blocks) tokens whose raw logit counts
  struct Adjusted {
    int32_t id;
    float value;
  };
  std::vector<Adjusted> adjusted;    // tokens with a bias or a penalty: not in `mask`
  std::vector<double> tile_masses;   // (tiles)
  Candidates candidates;             // of the draw
  Candidates best;                   // of the log-probabilities
  std::vector<float> heap;           // for the k-th largest
  std::vector<uint64_t> keys;        // for sorting, see sort-key.h
  std::vector<float> processed_row;  // (vocab)
};

}  // namespace onpolicy
