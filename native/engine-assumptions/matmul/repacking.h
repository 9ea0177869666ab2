// The object that ggml-cpu asks about weights that it repacks: replaced by one of ours, which calls it in turn.
#pragma once
#include "engine-assumptions/matmul/cpu-backend.h"

namespace onpolicy::matmul {

// Returns why the object is not as expected, or null. Call it before the functions below.
const char* RecognizeRepacking(ggml_backend_dev_t cpu, ggml_backend_buffer_type_t repack);

// Returns the context of a buffer type that replaces the object. It calls WorkSizeOf and Compute for each node.
void* RepackingStandIn();

bool SupportedByRepacking(ggml_backend_dev_t cpu, const ggml_tensor* op);
bool WorkSizeOfRepacking(int threads, const ggml_tensor* node, size_t& size);
bool ComputeByRepacking(ggml_compute_params* params, ggml_tensor* node);

// Called for each node of each graph that a CPU backend computes: tries this addon first, then the engine's repacking. Returns false if
// ggml-cpu must compute the node itself.
bool WorkSizeOf(int threads, const ggml_tensor* node, size_t& size);
bool Compute(ggml_compute_params* params, ggml_tensor* node);

}  // namespace onpolicy::matmul
