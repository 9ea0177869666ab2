// Last residual stream -> log-probability and entropy of each target, a chunk of targets at a time, and their gradient back.
#pragma once
#include "sampler/row-scan.h"
#include "trainer/row-memory.h"

namespace onpolicy::training {

// A row of logits as samplers look at it: log-probabilities have the bits that they report.
RowScan ScanLogits(const float* logits, int64_t count);

// (vocabulary, targets) logits -> softmax - onehot in place, a graph's custom function. src[1]: (2, targets) target ids, each
// followed by a free place: log-probability and entropy replace the two. src[2]: (targets) factors of the columns, or null.
void SoftMaxRows(Tensor result, int thread, int threads, void*);

// Logits that are scaled and capped as the architecture says.
struct Logits {
  Tensor values;
  Tensor slope;  // d(value) / d(matmul with the head) over the scale; null: 1
};

// The matmul with the head, (vocabulary, targets) -> logits. The graph has the slope before whatever follows.
Logits BoundLogits(Graph& graph, const Shape& shape, Tensor matmul);

// Targets whose logits exist at one time.
int64_t HeadChunk(const Weights& weights);

// Writes the targets to where HeadForward looks for them.
void PutTargets(const Device& device, const Weights& weights, const RowMemory& memory,
                const std::vector<int32_t>& targets);

// What the temporary results of the next two take, in a memory that is planned at least.
size_t MeasureHead(const Device& device, const Weights& weights, const RowMemory& memory);

// Of each target.
struct Scores {
  std::vector<float> logprobs, entropies;
};

// Scores the targets, and, when the row's memory is for gradients, fills its `head_errors`:
// -d(log-probability of the target) / d(head's input) does not depend on the loss, so logits are needed once.
Scores HeadForward(Device* device, const Weights& weights, const RowMemory& memory, int64_t size, int64_t targets);

// d(loss)/d(log-probability) of each target, (targets) -> `memory.gradients[0]`, the residual stream's gradient.
void HeadBackward(Device* device, const Weights& weights, const RowMemory& memory, int64_t size, const std::vector<float>& gradient);

}  // namespace onpolicy::training
