// The kernels over `Lanes`, 16 floats that the including file defines for its instruction set. Included once per
// variant, inside that variant's namespace: no include guard, and nothing from the standard library.


// The bits of one of the four groups of 16 tokens in a block.
static inline uint32_t GroupBits(const uint32_t* words, size_t group) {
  return (words[group >> 1] >> ((group & 1) * 16)) & 0xFFFFu;
}

static inline Lanes PowerOfTwo(Lanes x) {
  const Lanes shifted = Add(x, Splat(power::kRound));
  const Lanes f = Subtract(x, Subtract(shifted, Splat(power::kRound)));
  Lanes p = Multiply(Splat(power::kC5), f);
  p = Multiply(Add(p, Splat(power::kC4)), f);
  p = Multiply(Add(p, Splat(power::kC3)), f);
  p = Multiply(Add(p, Splat(power::kC2)), f);
  p = Multiply(Add(p, Splat(power::kC1)), f);
  p = Add(p, Splat(1.0f));
  return ZeroUnless(AddExponent(p, shifted), AtLeast(x, Splat(power::kLowest)));
}

static bool BlockMaxima(const float* row, size_t blocks, float* maxima) {
  Truth nan = Never();
  for (size_t b = 0; b < blocks; ++b, row += kBlockSize) {
    const Lanes v0 = Load(row), v1 = Load(row + 16), v2 = Load(row + 32), v3 = Load(row + 48);
    nan = Either(nan, Either(Unordered(v0, v1), Unordered(v2, v3)));
    maxima[b] = ReduceMax(Max(Max(v0, v1), Max(v2, v3)));
  }
  return Bits(nan) == 0;
}

static void MaskedMaxima(const float* row, const uint32_t* mask, size_t blocks, const float* maxima,
                         float* masked) {
  for (size_t b = 0; b < blocks; ++b, row += kBlockSize, mask += 2) {
    if ((mask[0] & mask[1]) == 0xFFFFFFFFu) {
      masked[b] = maxima[b];
    } else if ((mask[0] | mask[1]) == 0) {
      masked[b] = kMinusInfinity;
    } else {
      Lanes best = Splat(kMinusInfinity);
      for (size_t g = 0; g < 4; ++g)
        best = Max(best, Choose(FromBits(GroupBits(mask, g)), Load(row + 16 * g), Splat(kMinusInfinity)));
      masked[b] = ReduceMax(best);
    }
  }
}

static void BlockSums(const float* row, const uint32_t* mask, size_t blocks, const float* maxima,
                      float reference, float scale, float floor, float* sums) {
  const Lanes reference_lanes = Splat(reference), scale_lanes = Splat(scale);
  for (size_t b = 0; b < blocks; ++b, row += kBlockSize) {
    if (!(maxima[b] >= floor)) {
      sums[b] = 0;
      continue;
    }
    Lanes w[4];
    for (size_t g = 0; g < 4; ++g)
      w[g] = PowerOfTwo(Multiply(Subtract(Load(row + 16 * g), reference_lanes), scale_lanes));
    if (mask != nullptr && (mask[2 * b] & mask[2 * b + 1]) != 0xFFFFFFFFu)
      for (size_t g = 0; g < 4; ++g) w[g] = ZeroUnless(w[g], FromBits(GroupBits(mask + 2 * b, g)));
    sums[b] = ReduceAdd(Add(Add(w[0], w[1]), Add(w[2], w[3])));
  }
}

static size_t Collect(const float* row, const uint32_t* mask, size_t blocks, const float* maxima,
                      float threshold, int32_t first_id, int32_t* ids, float* values) {
  const Lanes threshold_lanes = Splat(threshold);
  size_t count = 0;
  for (size_t b = 0; b < blocks; ++b) {
    if (!(maxima[b] >= threshold)) continue;
    for (size_t g = 0; g < 4; ++g) {
      const size_t start = b * kBlockSize + 16 * g;
      uint32_t bits = Bits(AtLeast(Load(row + start), threshold_lanes));
      if (mask != nullptr) bits &= GroupBits(mask + 2 * b, g);
      for (; bits != 0; bits &= bits - 1) {
        const size_t index = start + LowestBit(bits);
        ids[count] = first_id + static_cast<int32_t>(index);
        values[count++] = row[index];
      }
    }
  }
  return count;
}

static size_t CountAtLeast(const float* row, size_t blocks, const float* maxima, float threshold) {
  const Lanes threshold_lanes = Splat(threshold);
  size_t count = 0;
  for (size_t b = 0; b < blocks; ++b) {
    if (!(maxima[b] >= threshold)) continue;
    const float* block = row + b * kBlockSize;
    for (size_t g = 0; g < 4; ++g)
      count += CountBits(Bits(AtLeast(Load(block + 16 * g), threshold_lanes)));
  }
  return count;
}

static void Weights(const float* values, size_t count, float reference, float scale, float* weights) {
  const Lanes reference_lanes = Splat(reference), scale_lanes = Splat(scale);
  for (size_t i = 0; i < count; i += 16)
    Store(weights + i, PowerOfTwo(Multiply(Subtract(Load(values + i), reference_lanes), scale_lanes)));
}

static constexpr Kernels Table(const char* name) {
  return {name, BlockMaxima, MaskedMaxima, BlockSums, Collect, CountAtLeast, Weights};
}
