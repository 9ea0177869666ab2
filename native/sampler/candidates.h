// A scanned row -> the tokens that may be drawn, with weights: collects, weighs and filters them, and draws one.
#pragma once
#include <algorithm>
#include <cstdint>

#include "sampler/row-scan.h"

namespace onpolicy {

// The boundary of top_p is compared with the accuracy that float32 logits have, so that a token which meets it
// exactly on paper is treated as meeting it.
inline constexpr double kTopPTolerance = 5e-7;

// The lowest logit at least `min_p` as probable as the best one, with the same accuracy.
float MinPThreshold(float min_p, float temperature, float best);

// Fills scratch.candidates with every allowed and adjusted token >= threshold. Without weights.
void CollectCandidates(const RowScan& scan, float threshold, SamplerScratch& scratch);

// The largest value of the candidates.
float BestValue(const Candidates& candidates);

// Computes the weights of candidates at a temperature, given as WeightScale. No value may be above `best`.
void WeighCandidates(float best, float scale, const Kernels& kernels, Candidates& candidates);

double TotalWeight(const Candidates& candidates);

// Keeps the candidates for whose index `keep` is true.
template <class Keep>
void KeepIf(Candidates& candidates, Keep keep) {
  size_t kept = 0;  // written always, counted when it matters: no branch to mispredict
  for (size_t i = 0; i < candidates.count; ++i) {
    const size_t stays = keep(i);  // 0 or 1
    candidates.ids[kept] = candidates.ids[i];
    candidates.values[kept] = candidates.values[i];
    candidates.weights[kept] = candidates.weights[i];
    kept += stays;
  }
  candidates.count = kept;
}

// Keeps the k best candidates, and those equal to the last of them.
void KeepTopK(size_t k, SamplerScratch& scratch);

// Keeps the best candidates, best first and lowest id first among equals, while those before them weigh less
// than `limit`: the same as masking, from the worst up, all that fit into the rest of the mass.
void KeepTopP(double limit, SamplerScratch& scratch);

// Returns the first index at which the running sum of `weights` exceeds `target`. Rounding can leave `target` at or past the
// sum; then it is the last index with any weight. `target` becomes the rest of it inside that index.
template <class Weight>
size_t FindPlace(size_t count, Weight weight, double& target) {
  double below = 0, last_below = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const double w = weight(i);
    if (!(w > 0)) continue;
    last = i;
    last_below = below;
    below += w;
    if (below > target) break;
  }
  target = std::max(target - last_below, 0.0);
  return last;
}

// Index of the candidate at `u` in [0, 1).
size_t DrawFromCandidates(double u, const Candidates& candidates);

}  // namespace onpolicy
