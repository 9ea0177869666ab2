// A scanned row -> one token: the greedy choice, or a draw after min_p, top_k and top_p.
// A draw takes one number u in [0, 1) and returns the first token, in order of id, at which the cumulative
// probability of the surviving tokens exceeds u.
#pragma once
#include "sampler/row-scan.h"
#include "sampler/sampler-plan.h"

namespace onpolicy {

// Returns the token with the largest adjusted or allowed logit, the lowest id among equals. At least one token must remain.
int32_t ArgMax(const RowScan& scan, const SamplerScratch& scratch);

// Returns true if top_k drops tokens.
bool LimitsCount(const SamplerPlan& plan);

// Returns true if the plan drops tokens after the greedy point.
bool Filters(const SamplerPlan& plan);

// Returns true if a draw needs the weights of the whole row (ScanRequest::weights).
bool NeedsRowWeights(const SamplerPlan& plan);

// Draws from every allowed token. Needs row weights.
int32_t DrawFromRow(const RowScan& scan, float scale, double u, SamplerScratch& scratch);

// Fills scratch.candidates with the tokens that pass min_p, top_k and top_p, and their weights.
void FilterCandidates(const SamplerPlan& plan, const RowScan& scan, SamplerScratch& scratch);

// Returns the largest logit of allowed and adjusted tokens, or -infinity if there are none.
float BestLogit(const RowScan& scan, const SamplerScratch& scratch);

}  // namespace onpolicy
