// The kernels over `Lanes`, 16 floats that the including file defines for its instruction set. Included once
// per variant, inside that variant's namespace: no include guard, and nothing from the standard library.

// Returns the bits of one of the four groups of 16 tokens in a block.
ONPOLICY_INLINE uint32_t GroupBits(const uint32_t* words, size_t group) {
  return (words[group >> 1] >> ((group & 1) * 16)) & 0xFFFFu;
}

// 2^(distance * scale); garbage unless the exponent is in [-126, 127].
ONPOLICY_INLINE Lanes PowerOfTwo(Lanes distance, Lanes scale) {
  const Lanes shifted = Fused(distance, scale, Splat(power::kRound));
  const Lanes f = Fused(distance, scale, Subtract(Splat(power::kRound), shifted));
  Lanes p = Fused(Splat(power::kC5), f, Splat(power::kC4));
  p = Fused(p, f, Splat(power::kC3));
  p = Fused(p, f, Splat(power::kC2));
  p = Fused(p, f, Splat(power::kC1));
  p = Fused(p, f, Splat(1.0f));
  return AddExponent(p, shifted);
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
  // Blocks in groups of 32, so that finding the few that need work costs no mispredicted branch.
  for (size_t begin = 0; begin < blocks; begin += 32) {
    const size_t count = blocks - begin < 32 ? blocks - begin : 32;
    uint32_t partial = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t* words = mask + 2 * (begin + i);
      masked[begin + i] = maxima[begin + i];
      partial |= static_cast<uint32_t>((words[0] & words[1]) != 0xFFFFFFFFu) << i;
    }
    for (; partial != 0; partial &= partial - 1) {
      const size_t b = begin + LowestBit(partial);
      const uint32_t* words = mask + 2 * b;
      Lanes best = Splat(kMinusInfinity);
      if ((words[0] | words[1]) != 0) {
        for (size_t g = 0; g < 4; ++g) {
          const Lanes values = Load(row + b * kBlockSize + 16 * g);
          best = Max(best, Choose(FromBits(GroupBits(words, g)), values, Splat(kMinusInfinity)));
        }
      }
      masked[b] = ReduceMax(best);
    }
  }
}

static void BlockSums(const float* row, const uint32_t* mask, size_t blocks, const float* maxima,
                      float reference, float scale, float floor, float* sums) {
  const Lanes reference_lanes = Splat(reference), scale_lanes = Splat(scale);
  // Clamped instead of zeroed: 2^-125 is lost beside the block's largest weight.
  const Lanes lowest = Splat(power::kLowest / scale);
  for (size_t b = 0; b < blocks; ++b, row += kBlockSize) {
    if (!(maxima[b] >= floor)) {
      sums[b] = 0;
      continue;
    }
    Lanes sum = Splat(0);
    if (mask == nullptr || (mask[2 * b] & mask[2 * b + 1]) == 0xFFFFFFFFu) {
      for (size_t g = 0; g < 4; ++g) {
        const Lanes distance = Max(Subtract(Load(row + 16 * g), reference_lanes), lowest);
        sum = Add(sum, PowerOfTwo(distance, scale_lanes));
      }
    } else {
      for (size_t g = 0; g < 4; ++g) {
        const Lanes distance = Max(Subtract(Load(row + 16 * g), reference_lanes), lowest);
        const Truth allowed = FromBits(GroupBits(mask + 2 * b, g));
        sum = Add(sum, ZeroUnless(PowerOfTwo(distance, scale_lanes), allowed));
      }
    }
    sums[b] = ReduceAdd(sum);
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
    for (size_t g = 0; g < 4; ++g) count += CountBits(Bits(AtLeast(Load(block + 16 * g), threshold_lanes)));
  }
  return count;
}

static void Weights(const float* values, size_t count, float reference, float scale, float* weights) {
  const Lanes reference_lanes = Splat(reference), scale_lanes = Splat(scale);
  const Lanes lowest = Splat(power::kLowest / scale);
  for (size_t i = 0; i < count; i += 16) {
    const Lanes distance = Subtract(Load(values + i), reference_lanes);
    const Lanes weight = PowerOfTwo(Max(distance, lowest), scale_lanes);
    Store(weights + i, ZeroUnless(weight, AtLeast(distance, lowest)));
  }
}

static constexpr Kernels Table(const char* name) {
  return {name, BlockMaxima, MaskedMaxima, BlockSums, Collect, CountAtLeast, Weights};
}
