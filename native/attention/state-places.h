// Nodes that move the states of a gated delta rule or of a convolution out of the cache and back -> the cache's own rows, where they can be
// read and written where they are used. The states of a layer are as large as a small matrix of weights, for each sequence: each copy costs
// as much as the rule.
#pragma once
#include <cstdint>

#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

// Of one node. Distances are in numbers.
struct StatePlaces {
  const char* from;         // row 0
  size_t from_row;          // bytes
  const int32_t* rows;      // (sequences) of `from`; null: row i is of sequence i
  float* to;
  size_t to_sequence, to_snapshot;
};

// Before a graph is computed its nodes are planned in their order, and each of these is told.
void PlanReading(const ggml_tensor* get_rows);
void PlanJoining(const ggml_tensor* concat);
void PlanRule(const ggml_tensor* rule);
// `copy`: any copy. Where it and what reads the states for its rule can be left out, all three are marked. Of a convolution, the engine
// writes a state for each token that may be taken back, also of those before this pass: these are never read.
void PlanWriting(const ggml_tensor* copy);

// When they are computed. False: the engine has to.
bool Read(const ggml_tensor* get_rows, int thread);
// A token of each sequence behind what is left of earlier ones.
bool Join(const ggml_tensor* concat, int thread, int threads);
bool IsLeftOut(const ggml_tensor* copy);
// Before the rule of a thread's share.
StatePlaces PlacesOf(const ggml_tensor* rule, int thread);

}  // namespace onpolicy::attention
