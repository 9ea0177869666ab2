// Nodes that copy the states of a gated delta rule or of a convolution out of the cache and back -> the cache's own rows, if they can be
// read and written in place. A layer's state is as large as a small weight matrix, for each sequence: each copy costs as much as the rule.
#pragma once
#include <cstdint>

#include "engine-assumptions/matmul/cpu-backend.h"

namespace onpolicy::attention {

// Addresses of the states of one node. Distances are in floats unless noted.
struct StatePlaces {
  const char* from;         // row 0
  size_t from_row;          // bytes
  const int32_t* rows;      // (sequences) row in `from`; null: row i belongs to sequence i
  float* to;
  size_t to_sequence, to_snapshot;
};

// Called for each of these nodes before its graph is computed, in the order of the graph.
void PlanReading(const ggml_tensor* get_rows);
void PlanJoining(const ggml_tensor* concat);
void PlanRule(const ggml_tensor* rule);
// `copy`: any copy. If both the copy and the node that reads the states for its rule can be skipped, all three are marked. For a
// convolution, the engine writes a state for each token that may be taken back, also for those before this pass; these are never read.
void PlanWriting(const ggml_tensor* copy);

// Called when a node is computed. Returns false if the engine must compute it.
bool Read(const ggml_tensor* get_rows, int thread);
// Appends a token of each sequence to those left of earlier steps.
bool Join(const ggml_tensor* concat, int thread, int threads);
bool IsLeftOut(const ggml_tensor* copy);
// Called before a thread computes its share of the rule.
StatePlaces PlacesOf(const ggml_tensor* rule, int thread);

}  // namespace onpolicy::attention
