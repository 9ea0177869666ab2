// A scanned row -> the tokens that may still be drawn, in the order of llama.cpp's samplers: top-n-sigma, top_k, typical_p, top_p, min_p,
// XTC, temperature, adaptive-p; or temperature, then mirostat. Each sees the probabilities that remain after the previous ones.
#pragma once
#include "sampler/row-scan.h"
#include "sampler/sampler-plan.h"

namespace onpolicy {

// Returns true if the plan has a sampler that exists only in this order.
bool UsesChain(const SamplerPlan& plan);

// The state that earlier draws of a sequence have left to mirostat and to adaptive-p.
class DrawMemory {
 public:
  explicit DrawMemory(const SamplerPlan& plan);

  // Mirostat's bound on the surprise, in bits.
  double bound() const { return bound_; }

  // The probability that adaptive-p prefers now.
  double target(const SamplerPlan& plan) const;

  // Takes the surprise of a drawn token, in bits.
  void Accept(const SamplerPlan& plan, double surprise);

 private:
  double bound_;
  double weighted_sum_ = 0, total_weight_ = 1;  // of the probabilities of drawn tokens, the newest first
};

// Returns true if draws depend on earlier ones, so that their surprise matters.
bool HasMemory(const SamplerPlan& plan);

// Fills scratch.candidates and their weights; returns the temperature of the weights. `xtc` in [0, 1): XTC runs if it is not above its
// probability.
float FilterInChain(const SamplerPlan& plan, const DrawMemory& memory, double xtc, const RowScan& scan, SamplerScratch& scratch);

// Surprise of a candidate in bits, before adaptive-p.
double SurpriseOf(const SamplerPlan& plan, size_t index, const SamplerScratch& scratch);

}  // namespace onpolicy
