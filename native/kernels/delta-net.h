// Gated delta net: queries, keys, values, decays and strengths of a row's tokens, and the gradient of the output -> their gradients.
// Per head, with a state S (size x size) and S' = e^decay S: S <- S' + k d^T with d = beta (v - S'^T k); output S^T q / sqrt(size).
#pragma once
#include <cstddef>
#include <cstdint>

namespace onpolicy::training {

// The size of a head must be a multiple of this.
constexpr int kDeltaLanes = 16;

// Tokens of one row, in order, that begin with the end state of another run.
struct DeltaRun {
  int64_t start, count;
  int64_t parent;  // index of the previous run; -1: the state is zero
};

struct DeltaNetRow {
  int64_t size, key_heads, value_heads, tokens;
  bool is_grouped;  // heads of values that read the same head of keys are adjacent; otherwise head h reads head h % key_heads
  const DeltaRun* runs;  // parents before their children
  int64_t run_count;

  int64_t KeyHead(int64_t value_head) const { return is_grouped ? value_head / (value_heads / key_heads) : value_head % key_heads; }
};

// (size, key heads, tokens) query, key; (size, value heads, tokens) value, output; (value heads, tokens) decay, beta
struct DeltaNetInputs {
  const float *query, *key, *value, *decay, *beta, *output_gradient;
};

struct DeltaNetGradients {
  float *query, *key, *value, *decay, *beta;  // as the inputs lie
};

size_t DeltaNetWorkBytes(const DeltaNetRow& row);

// Fills the gradients of one head of keys and of the heads of values that read it. `work` is aligned to 64.
void DeltaNetBackward(const DeltaNetRow& row, const DeltaNetInputs& inputs, int64_t key_head, void* work,
                      const DeltaNetGradients& gradients);

}  // namespace onpolicy::training
