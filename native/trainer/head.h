// Last residual stream -> log-probability and entropy of each target, a chunk of targets at a time, and their gradient back.
#pragma once
#include "sampler/row-scan.h"
#include "trainer/row-memory.h"

namespace onpolicy::training {

// Scans a row of logits as samplers do, so that log-probabilities equal those they report, bit for bit.
RowScan ScanLogits(const float* logits, int64_t count);

// (vocabulary, targets) logits -> softmax - onehot in place, a graph's custom function. src[1]: (2, targets) target ids, each
// followed by a free place: log-probability and entropy replace the two. src[2]: (targets) factors of the columns, or null.
void SoftMaxRows(Tensor result, int thread, int threads, void*);

// Logits, scaled and capped as the architecture requires.
struct Logits {
  Tensor values;
  Tensor slope;  // d(value) / d(matmul with the head), divided by the scale; null means 1
};

// The matmul with the head, (vocabulary, targets) -> logits. The slope is added to the graph first.
Logits BoundLogits(Graph& graph, const Shape& shape, Tensor matmul);

// Returns the number of targets whose logits are in memory at a time.
int64_t HeadChunk(const Weights& weights);

// Writes the targets to the memory that HeadForward reads.
void PutTargets(const Device& device, const Weights& weights, const RowMemory& memory,
                const std::vector<int32_t>& targets);

// Returns the bytes of the temporary results of HeadForward and HeadBackward. `memory` may be only planned.
size_t MeasureHead(const Device& device, const Weights& weights, const RowMemory& memory);

// Log-probability and entropy of each target.
struct Scores {
  std::vector<float> logprobs, entropies;
};

// Scores the targets, and, when the row's memory is for gradients, fills its `head_errors`:
// -d(log-probability of the target) / d(head's input) does not depend on the loss, so logits are needed once.
// If `has_temperatures`, logits are multiplied by the memory's `coldness`; the caller must apply it to `head_errors`.
Scores HeadForward(Device* device, const Weights& weights, const RowMemory& memory, int64_t size, int64_t targets, bool has_temperatures);

// d(loss)/d(log-probability) of each target, (targets) -> `memory.gradients[0]`, the residual stream's gradient.
void HeadBackward(Device* device, const Weights& weights, const RowMemory& memory, int64_t size, const std::vector<float>& gradient);

}  // namespace onpolicy::training
