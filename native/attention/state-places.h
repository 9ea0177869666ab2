// Nodes that move the states of a gated delta rule out of the cache and back -> the cache's own rows, where the rule can read and write
// them itself. The states of a layer are as large as a small matrix of weights, for each sequence: each copy costs as much as the rule.
#pragma once
#include <cstdint>

#include "matmul/engine-functions.h"

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
void PlanRule(const ggml_tensor* rule);
// `copy`: any copy. Where it and what reads the states for its rule can be left out, all three are marked.
void PlanWriting(const ggml_tensor* copy);

// When they are computed. False: the engine has to.
bool Read(const ggml_tensor* get_rows, int thread);
bool IsLeftOut(const ggml_tensor* copy);
// Before the rule of a thread's share.
StatePlaces PlacesOf(const ggml_tensor* rule, int thread);

}  // namespace onpolicy::attention
