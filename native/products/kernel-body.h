// What every set of kernels includes inside its namespace, to be compiled for its instructions: packed blocks -> values and scales
// as tiles multiply them, and the loop that rounds activations. The set defines WidenHalves(halves, count, out), which converts 16-bit
// floats, RoundBlock and RunTile.

// The last rows of a token's block.
void StoreTerms(float scale, int32_t first_sum, int32_t second_sum, const Format& format, int tokens, int32_t* column) {
  const auto store = [&](int64_t row, auto value) { __builtin_memcpy(column + row * tokens, &value, 4); };
  store(kScaleRow, scale);
  if (format.terms == Terms::kMinimum) return store(kSumRow, scale * static_cast<float>(first_sum + second_sum));
  if (format.terms == Terms::kOffset) return store(kSumRow, -format.offset * (first_sum + second_sum));
  store(kSumRow, -format.offset * first_sum);
  store(kSumRow + 1, -format.offset * second_sum);
}

// One block of one token, a column of the group.
void RoundBlock(const float* x, const Format& format, int tokens, int32_t* column);

void Round(const void* x, size_t stride, int tokens, int64_t first, int64_t last, const Format& format, int32_t* group) {
  for (int token = 0; token < tokens; ++token) {
    const auto* values = reinterpret_cast<const float*>(static_cast<const char*>(x) + token * stride);
    for (int64_t b = first; b < last; ++b)
      RoundBlock(values + b * kBlock, format, tokens, group + b * RowsOf(format.terms) * tokens + token);
  }
}

template <typename Format>
Expanded Expand(const uint8_t* panel, int64_t width, int64_t first, int64_t count, Scratch* scratch);

// The values are multiplied where they lie, and those that follow are fetched meanwhile.
template <>
Expanded Expand<Q8_0>(const uint8_t* panel, int64_t width, int64_t first, int64_t count, Scratch* scratch) {
  WidenHalves(Q8_0::Scales(panel, width) + first * kPanel * 2, count * kPanel, scratch->scales);
  return {panel + first * kBlockBytes, scratch->scales, /*ahead=*/4096};
}

template <>
Expanded Expand<Q4_K>(const uint8_t* panel, int64_t width, int64_t first, int64_t count, Scratch* scratch) {
  alignas(64) float factors[2][kChunkBlocks / Q4_K::kGroupBlocks * kPanel];
  const int64_t groups = count / Q4_K::kGroupBlocks;
  const uint8_t* halves = panel + Q4_K::FactorsAt(width) + first / Q4_K::kGroupBlocks * kPanel * 2;
  WidenHalves(halves, groups * kPanel, factors[0]);
  WidenHalves(halves + width / Q4_K::kGroup * kPanel * 2, groups * kPanel, factors[1]);
  for (int64_t b = 0; b < count; ++b) {
    const uint8_t* __restrict from = panel + (first + b) * Q4_K::kPackedBytes;
    uint8_t* __restrict to = scratch->values + b * kBlockBytes;
    for (int64_t i = 0; i < Q4_K::kPackedBytes; ++i) {
      to[i] = from[i] & 15;
      to[Q4_K::kPackedBytes + i] = from[i] >> 4;
    }
    const uint8_t* scales = panel + Q4_K::ScalesAt(width) + (first + b) * kPanel;
    const uint8_t* minima = panel + Q4_K::MinimaAt(width) + (first + b) * kPanel;
    const int64_t group = b / Q4_K::kGroupBlocks * kPanel;
    float* __restrict out = scratch->scales + b * 2 * kPanel;
    for (int64_t row = 0; row < kPanel; ++row) {
      out[row] = factors[0][group + row] * static_cast<float>(scales[row]);
      out[kPanel + row] = factors[1][group + row] * static_cast<float>(minima[row]);
    }
  }
  return {scratch->values, scratch->scales, 0};
}

template <>
Expanded Expand<Q6_K>(const uint8_t* panel, int64_t width, int64_t first, int64_t count, Scratch* scratch) {
  alignas(64) float factors[kChunkBlocks / Q6_K::kGroupBlocks * kPanel];
  WidenHalves(panel + Q6_K::FactorsAt(width) + first / Q6_K::kGroupBlocks * kPanel * 2, count / Q6_K::kGroupBlocks * kPanel,
              factors);
  for (int64_t b = 0; b < count; ++b) {
    const uint8_t* __restrict low = panel + (first + b) * Q6_K::kPackedBytes;
    const uint8_t* __restrict high = low + Q6_K::kLowBytes;
    uint8_t* __restrict to = scratch->values + b * kBlockBytes;
    constexpr int64_t kTwoSteps = 2 * kStepBytes;
    for (int64_t i = 0; i < kTwoSteps; ++i) {
      to[i] = static_cast<uint8_t>((low[i] & 15) | (high[i] & 3) << 4);
      to[kTwoSteps + i] = static_cast<uint8_t>((low[kTwoSteps + i] & 15) | (high[i] >> 2 & 3) << 4);
      to[2 * kTwoSteps + i] = static_cast<uint8_t>(low[i] >> 4 | (high[i] >> 4 & 3) << 4);
      to[3 * kTwoSteps + i] = static_cast<uint8_t>(low[kTwoSteps + i] >> 4 | high[i] >> 6 << 4);
    }
    const auto* scales = reinterpret_cast<const int8_t*>(panel + Q6_K::ScalesAt(width) + (first + b) * 2 * kPanel);
    const int64_t group = b / Q6_K::kGroupBlocks * kPanel;
    float* __restrict out = scratch->scales + b * 2 * kPanel;
    for (int64_t part = 0; part < 2; ++part)
      for (int64_t row = 0; row < kPanel; ++row)
        out[part * kPanel + row] = factors[group + row] * static_cast<float>(scales[part * kPanel + row]);
  }
  return {scratch->values, scratch->scales, 0};
}

#define ONPOLICY_EXPAND(name) Expand<name>,
#define ONPOLICY_TILE(tokens, panels)                                                                      \
  {tokens, panels, {RunTile<Terms::kOffset, panels, tokens>, RunTile<Terms::kHalves, panels, tokens>, \
                    RunTile<Terms::kMinimum, panels, tokens>}}
