#include "kernels/delta-net.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/target.h"

namespace onpolicy::training {
namespace {

// Number of tokens whose states are kept at a time, recomputed from the first of them. They fit into the processor's cache.
constexpr int64_t kDeltaChunk = 16;

int64_t ChunksOf(const DeltaRun& run) { return (run.count + kDeltaChunk - 1) / kDeltaChunk; }

// One token of one head.
struct DeltaToken {
  const float *query, *key, *value, *output_gradient;  // (size)
  float decay, beta;                                   // the decay as a factor
};

struct DeltaTokenGradients {
  float *query, *key, *value;  // (size); those of query and key are added to
  float *decay, *beta;
};

// S -> S' + k d^T, in place. Fills `delta`, which is d.
ONPOLICY_BEST_TARGET void Advance(float* __restrict state, float* __restrict delta, const DeltaToken& token, int64_t size) {
  for (int64_t j = 0; j < size; ++j) delta[j] = 0;
  for (int64_t i = 0; i < size; ++i) {
    float* __restrict row = state + i * size;
    const float key = token.key[i];
    for (int64_t j = 0; j < size; ++j) {
      row[j] *= token.decay;
      delta[j] += key * row[j];
    }
  }
  for (int64_t j = 0; j < size; ++j) delta[j] = token.beta * (token.value[j] - delta[j]);
  for (int64_t i = 0; i < size; ++i) {
    float* __restrict row = state + i * size;
    const float key = token.key[i];
    for (int64_t j = 0; j < size; ++j) row[j] += key * delta[j];
  }
}

constexpr int kDotLanes = kDeltaLanes;

inline float SumOf(const float* sums) {
  float total = 0;
  for (int lane = 0; lane < kDotLanes; ++lane) total += sums[lane];
  return total;
}

// Gradient of the state after the token -> that of the state before it, in place. `state` is the state before the token, `delta` as Advance
// left it, `error` (size) working memory.
ONPOLICY_BEST_TARGET void Retreat(float* __restrict state_gradient, const float* __restrict state, const float* __restrict delta,
                                  const DeltaToken& token, const DeltaTokenGradients& to, float scale, float* __restrict error,
                                  int64_t size) {
  const float* __restrict output_gradient = token.output_gradient;
  float delta_part = 0;  // d . output gradient
  for (int64_t j = 0; j < size; ++j) {
    error[j] = 0;
    delta_part += delta[j] * output_gradient[j];
  }
  for (int64_t i = 0; i < size; ++i) {
    float* __restrict row = state_gradient + i * size;
    const float* __restrict before = state + i * size;
    const float key = token.key[i], query = token.query[i] * scale;
    float of_query[kDotLanes] = {}, of_key[kDotLanes] = {};  // independent sums, so that the loop vectorises without reordering
    for (int64_t j = 0; j < size; j += kDotLanes)
      for (int64_t lane = 0; lane < kDotLanes; ++lane) {
        row[j + lane] += query * output_gradient[j + lane];
        error[j + lane] += key * row[j + lane];
        of_query[lane] += before[j + lane] * output_gradient[j + lane];
        of_key[lane] += row[j + lane] * delta[j + lane];
      }
    to.query[i] += scale * (token.decay * SumOf(of_query) + key * delta_part);
    to.key[i] += SumOf(of_key);
  }
  // `error` is the gradient of d; it becomes that of S'^T k.
  float of_beta = 0;
  for (int64_t j = 0; j < size; ++j) {
    of_beta += error[j] * delta[j];
    to.value[j] = token.beta * error[j];
    error[j] = -to.value[j];
  }
  *to.beta = token.beta != 0 ? of_beta / token.beta : 0;
  float of_decay = 0;
  for (int64_t i = 0; i < size; ++i) {
    float* __restrict row = state_gradient + i * size;
    const float* __restrict before = state + i * size;
    const float key = token.key[i];
    float of_key[kDotLanes] = {}, of_row[kDotLanes] = {};
    for (int64_t j = 0; j < size; j += kDotLanes)
      for (int64_t lane = 0; lane < kDotLanes; ++lane) {
        const float decayed = token.decay * before[j + lane];
        const float gradient = row[j + lane] + key * error[j + lane];
        of_key[lane] += decayed * error[j + lane];
        of_row[lane] += decayed * gradient;
        row[j + lane] = token.decay * gradient;
      }
    to.key[i] += SumOf(of_key);
    of_decay += SumOf(of_row);
  }
  *to.decay = of_decay;
}

ONPOLICY_BEST_TARGET void AddState(float* __restrict sum, const float* __restrict state, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += state[i];
}

// One head of values over a row.
class Head {
 public:
  Head(const DeltaNetRow& row, const DeltaNetInputs& inputs, int64_t key_head, int64_t value_head, float* work,
       const DeltaNetGradients& gradients)
      : row_(row), inputs_(inputs), key_head_(key_head), value_head_(value_head), gradients_(gradients), square_(row.size * row.size) {
    const auto take = [&](int64_t count) {
      float* taken = work;
      work += (count + kDotLanes - 1) / kDotLanes * kDotLanes;
      return taken;
    };
    ends_ = take(row.run_count * square_);
    end_gradients_ = take(row.run_count * square_);
    chunks_ = take(MostChunks(row) * square_);
    states_ = take((kDeltaChunk + 1) * square_);
    deltas_ = take(kDeltaChunk * row.size);
    error_ = take(row.size);
  }

  static int64_t MostChunks(const DeltaNetRow& row) {
    int64_t most = 0;
    for (int64_t i = 0; i < row.run_count; ++i) most = std::max(most, ChunksOf(row.runs[i]));
    return most;
  }
  static int64_t WorkFloats(const DeltaNetRow& row) {
    const int64_t square = row.size * row.size;
    return (2 * row.run_count + MostChunks(row) + kDeltaChunk + 1) * (square + kDotLanes) +
           (kDeltaChunk + 1) * (row.size + kDotLanes);
  }

  void Run() {
    const auto bytes = static_cast<size_t>(square_) * sizeof(float);
    for (int64_t i = 0; i < row_.run_count; ++i) {
      if (!IsParent(i)) continue;
      std::memcpy(End(i), Begin(i), bytes);
      for (int64_t t = 0; t < row_.runs[i].count; ++t) Advance(End(i), deltas_, TokenAt(row_.runs[i].start + t), row_.size);
    }
    std::memset(end_gradients_, 0, bytes * static_cast<size_t>(row_.run_count));
    for (int64_t i = row_.run_count - 1; i >= 0; --i) RunBack(i);
  }

 private:
  bool IsParent(int64_t run) const {
    return std::any_of(row_.runs, row_.runs + row_.run_count, [run](const DeltaRun& other) { return other.parent == run; });
  }
  float* End(int64_t run) { return ends_ + run * square_; }
  // Returns the state at the beginning of a run.
  const float* Begin(int64_t run) {
    if (row_.runs[run].parent >= 0) return End(row_.runs[run].parent);
    std::memset(states_, 0, static_cast<size_t>(square_) * sizeof(float));
    return states_;
  }

  void RunBack(int64_t index) {
    const DeltaRun& run = row_.runs[index];
    const auto bytes = static_cast<size_t>(square_) * sizeof(float);
    float* gradient = end_gradients_ + index * square_;
    std::memcpy(chunks_, Begin(index), bytes);
    for (int64_t chunk = 1; chunk < ChunksOf(run); ++chunk) {
      float* state = chunks_ + chunk * square_;
      std::memcpy(state, state - square_, bytes);
      for (int64_t t = (chunk - 1) * kDeltaChunk; t < chunk * kDeltaChunk; ++t) Advance(state, deltas_, TokenAt(run.start + t), row_.size);
    }
    for (int64_t chunk = ChunksOf(run) - 1; chunk >= 0; --chunk) {
      const int64_t first = chunk * kDeltaChunk, count = std::min(kDeltaChunk, run.count - first);
      std::memcpy(states_, chunks_ + chunk * square_, bytes);
      for (int64_t t = 0; t < count; ++t) {
        float* after = states_ + (t + 1) * square_;
        std::memcpy(after, after - square_, bytes);
        Advance(after, deltas_ + t * row_.size, TokenAt(run.start + first + t), row_.size);
      }
      for (int64_t t = count - 1; t >= 0; --t) {
        const int64_t token = run.start + first + t;
        const DeltaToken at = TokenAt(token);
        const DeltaTokenGradients to = GradientsAt(token);
        const float scale = 1.0f / std::sqrt(static_cast<float>(row_.size));
        Retreat(gradient, states_ + t * square_, deltas_ + t * row_.size, at, to, scale, error_, row_.size);
      }
    }
    if (run.parent >= 0) AddState(end_gradients_ + run.parent * square_, gradient, square_);
  }

  int64_t KeyPlace(int64_t token) const { return (token * row_.key_heads + key_head_) * row_.size; }
  int64_t ValuePlace(int64_t token) const { return token * row_.value_heads + value_head_; }

  DeltaToken TokenAt(int64_t token) const {
    const int64_t key = KeyPlace(token), place = ValuePlace(token);
    return {.query = inputs_.query + key,
            .key = inputs_.key + key,
            .value = inputs_.value + place * row_.size,
            .output_gradient = inputs_.output_gradient + place * row_.size,
            .decay = std::exp(inputs_.decay[place]),
            .beta = inputs_.beta[place]};
  }
  DeltaTokenGradients GradientsAt(int64_t token) const {
    const int64_t key = KeyPlace(token), place = ValuePlace(token);
    return {.query = gradients_.query + key,
            .key = gradients_.key + key,
            .value = gradients_.value + place * row_.size,
            .decay = gradients_.decay + place,
            .beta = gradients_.beta + place};
  }

  const DeltaNetRow& row_;
  const DeltaNetInputs& inputs_;
  const int64_t key_head_, value_head_;
  const DeltaNetGradients& gradients_;
  const int64_t square_;
  float* ends_;           // (runs) states after them
  float* end_gradients_;  // (runs)
  float* chunks_;         // (chunks) states before each of a run's
  float* states_;         // (tokens of a chunk + 1) states before each and after the last
  float* deltas_;         // (tokens of a chunk, size)
  float* error_;          // (size)
};

}  // namespace

size_t DeltaNetWorkBytes(const DeltaNetRow& row) { return static_cast<size_t>(Head::WorkFloats(row)) * sizeof(float); }

void DeltaNetBackward(const DeltaNetRow& row, const DeltaNetInputs& inputs, int64_t key_head, void* work,
                      const DeltaNetGradients& gradients) {
  for (int64_t token = 0; token < row.tokens; ++token) {
    const int64_t key = (token * row.key_heads + key_head) * row.size;
    std::fill_n(gradients.query + key, row.size, 0.0f);
    std::fill_n(gradients.key + key, row.size, 0.0f);
  }
  for (int64_t head = 0; head < row.value_heads; ++head)
    if (row.KeyHead(head) == key_head) Head(row, inputs, key_head, head, static_cast<float*>(work), gradients).Run();
}

}  // namespace onpolicy::training
