// A scanned row -> the tokens that may still be drawn, in the order of llama.cpp's samplers: top_k, typical_p, top_p, min_p, XTC,
// temperature; or temperature, then mirostat. Each sees the probabilities that those before it left.
#pragma once
#include "sampler/row-scan.h"
#include "sampler/sampler-plan.h"

namespace onpolicy {

// Whether the plan has a sampler that only this order knows.
bool UsesChain(const SamplerPlan& plan);

// Fills scratch.candidates and their weights; returns the temperature of the weights. `mu`: mirostat's bound on the surprise, in
// bits. `xtc` in [0, 1): XTC runs if it is not above its probability.
float FilterInChain(const SamplerPlan& plan, double mu, double xtc, const RowScan& scan, SamplerScratch& scratch);

// Surprise of a candidate, in bits.
double SurpriseOf(size_t index, const Candidates& candidates);

}  // namespace onpolicy
