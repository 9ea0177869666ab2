// Rows of a state and tokens -> outputs and the state after them; short convolutions. Every set of kernels includes this file after
// kernel-body.h. The set also defines
//   kDeltaRows                  rows whose state stays in registers

constexpr int kDeltaAhead = 1024;  // numbers of a state that are fetched ahead: rows of several heads are one stream of memory

// kRows rows from `row` on, of kVectors vectors, through all tokens.
template <int kVectors, int kRows, bool kHasGates>
void DeltaOf(const DeltaRows& d, int row) {
  constexpr int kSize = kVectors * kLanes;
  Lanes state[kRows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const float* from = d.from + (row + r) * kSize + i * kLanes;
      __builtin_prefetch(from + kDeltaAhead);
      state[r][i] = Load(from);
    }
  for (int t = 0; t < d.tokens; ++t) {
    const auto token = static_cast<size_t>(t);
    const float *k = d.k.data + token * d.k.stride, *q = d.q.data + token * d.q.stride, *v = d.v.data + token * d.v.stride + row;
    const float* factors = d.factors + t * (kHasGates ? kSize : 1);
    Lanes sums[kRows], outs[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r] = outs[r] = Splat(0);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const Lanes key = Load(k + i * kLanes), factor = kHasGates ? Load(factors + i * kLanes) : Splat(*factors);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        state[r][i] = Multiply(state[r][i], factor);
        sums[r] = Fused(state[r][i], key, sums[r]);
      }
    }
    Lanes deltas[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) deltas[r] = Splat((v[r] - ReduceAdd(sums[r])) * d.beta.data[token * d.beta.stride]);
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const Lanes key = Load(k + i * kLanes), query = Load(q + i * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        state[r][i] = Fused(key, deltas[r], state[r][i]);
        outs[r] = Fused(state[r][i], query, outs[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) d.y[token * d.y_token + static_cast<size_t>(row + r)] = ReduceAdd(outs[r]) * d.scale;
    const int64_t later = d.after + d.tokens - 1 - t;
    if (later < d.states)
      for (int r = 0; r < kRows; ++r)
        for (int i = 0; i < kVectors; ++i)
          Store(d.to + static_cast<size_t>(later) * d.state_stride + (row + r) * kSize + i * kLanes, state[r][i]);
  }
  // The next tokens continue from here.
  if (d.after > 0)
    for (int r = 0; r < kRows; ++r)
      for (int i = 0; i < kVectors; ++i) Store(d.to + (row + r) * kSize + i * kLanes, state[r][i]);
}

template <int kVectors, bool kHasGates>
void DeltaRowsOf(const DeltaRows& d) {
  int row = 0;
  for (; d.rows - row >= kDeltaRows; row += kDeltaRows) DeltaOf<kVectors, kDeltaRows, kHasGates>(d, row);
  for (; row < d.rows; ++row) DeltaOf<kVectors, 1, kHasGates>(d, row);
}

template <int kVectors>
void DeltaVectors(const DeltaRows& d) {
  for (int t = 0; t < d.tokens; ++t) {
    const float* gates = d.gates.data + static_cast<size_t>(t) * d.gates.stride;
    if (d.has_gates)
      for (int i = 0; i < kVectors; ++i) Store(d.factors + (t * kVectors + i) * kLanes, Exp(Load(gates + i * kLanes)));
    else d.factors[t] = ReduceMax(Exp(Splat(*gates)));
  }
  if (d.has_gates) DeltaRowsOf<kVectors, true>(d);
  else DeltaRowsOf<kVectors, false>(d);
}

void Delta(const DeltaRows& d) {
  switch (d.size / kLanes) {
    case 1: return DeltaVectors<1>(d);
    case 2: return DeltaVectors<2>(d);
    case 4: return DeltaVectors<4>(d);
    default: return DeltaVectors<8>(d);
  }
}

// Computes vectors of neighbouring tokens, which are then stored channel by channel, and the last few tokens one by one.
void Convolve(const Convolution& c) {
  int64_t token = 0;
  for (; c.tokens - token >= kLanes; token += kLanes) {
    float sums[kLanes * kLanes];
    for (int channel = 0; channel < c.channels; ++channel) {
      const float *x = c.x + static_cast<size_t>(channel) * c.x_channel + token, *weights = c.weights + channel * c.taps;
      Lanes sum = Splat(0);
      for (int i = 0; i < c.taps; ++i) sum = Fused(Load(x + i), Splat(weights[i]), sum);
      Store(sums + channel * kLanes, sum);
    }
    for (int t = 0; t < kLanes; ++t)
      for (int channel = 0; channel < c.channels; ++channel)
        c.y[static_cast<size_t>(token + t) * c.y_token + static_cast<size_t>(channel)] = sums[channel * kLanes + t];
  }
  for (; token < c.tokens; ++token)
    for (int channel = 0; channel < c.channels; ++channel) {
      const float *x = c.x + static_cast<size_t>(channel) * c.x_channel + token, *weights = c.weights + channel * c.taps;
      float sum = 0;
      for (int i = 0; i < c.taps; ++i) sum = __builtin_fmaf(x[i], weights[i], sum);
      c.y[static_cast<size_t>(token) * c.y_token + static_cast<size_t>(channel)] = sum;
    }
}

void AddWeighted(const float* x, const float* weights, int64_t count, float* y) {
  int64_t i = 0;
  for (; count - i >= kLanes; i += kLanes) Store(y + i, Fused(Load(x + i), Load(weights + i), Load(y + i)));
  for (; i < count; ++i) y[i] = __builtin_fmaf(x[i], weights[i], y[i]);
}
