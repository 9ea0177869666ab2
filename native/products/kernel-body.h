// What every set of kernels includes inside its namespace, to be compiled for its instructions: packed blocks -> values and scales
// as tiles multiply them. The set defines WidenHalves(halves, count, out), which converts 16-bit floats, and RunTile.

// The last rows of a token's block.
void StoreTerms(float scale, int32_t first_sum, int32_t second_sum, const Format& format, int tokens, int32_t* column) {
  const auto store = [&](int64_t row, auto value) { __builtin_memcpy(column + row * tokens, &value, 4); };
  store(kScaleRow, scale);
  if (format.terms == Terms::kMinimum) return store(kSumRow, scale * static_cast<float>(first_sum + second_sum));
  if (format.terms == Terms::kOffset) return store(kSumRow, -format.offset * (first_sum + second_sum));
  store(kSumRow, -format.offset * first_sum);
  store(kSumRow + 1, -format.offset * second_sum);
}

template <typename Format>
Expanded Expand(const uint8_t* panel, int64_t width, int64_t first, int64_t count, Scratch* scratch);

// The values are multiplied where they lie, and those that follow are fetched meanwhile.
template <>
Expanded Expand<Q8_0>(const uint8_t* panel, int64_t width, int64_t first, int64_t count, Scratch* scratch) {
  WidenHalves(Q8_0::Scales(panel, width) + first * kPanel * 2, count * kPanel, scratch->scales);
  return {panel + first * kBlockBytes, scratch->scales, /*ahead=*/4096};
}

#define ONPOLICY_EXPAND(name) Expand<name>,
#define ONPOLICY_TILE(tokens, panels)                                                                      \
  {tokens, panels, {RunTile<Terms::kOffset, panels, tokens>, RunTile<Terms::kHalves, panels, tokens>, \
                    RunTile<Terms::kMinimum, panels, tokens>}}
