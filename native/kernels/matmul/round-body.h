// Blocks of activations -> 8 bits, by AVX2 instructions. Included by the sets of x64, which all have AVX2, inside their namespace.
// A vector has a lane for each block of each token, so that scales and sums of 8 of them are computed at once.

constexpr int kRoundedBlocks = 8;
static_assert(kTileTokens <= kRoundedBlocks);

// Returns the largest lane of each of 8 vectors.
__m256 LargestOfEach(const __m256* v) {
  __m256 pairs[4], fours[2];
  for (int i = 0; i < 4; ++i)
    pairs[i] = _mm256_max_ps(_mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]), _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]));
  for (int i = 0; i < 2; ++i)
    fours[i] = _mm256_max_ps(_mm256_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], 0x44),
                             _mm256_shuffle_ps(pairs[2 * i], pairs[2 * i + 1], 0xEE));
  return _mm256_max_ps(_mm256_permute2f128_ps(fours[0], fours[1], 0x20), _mm256_permute2f128_ps(fours[0], fours[1], 0x31));
}

// Exchanges lanes and vectors.
void Transpose(__m256i* v) {
  __m256i twos[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    twos[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    twos[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_unpacklo_epi64(twos[i + j], twos[i + j + 2]);
      fours[i + 2 * j + 1] = _mm256_unpackhi_epi64(twos[i + j], twos[i + j + 2]);
    }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    v[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

// Returns for each lane the sum of the signed bytes of four vectors.
__m256i SumOfBytes(const __m256i* v) {
  __m256i pairs = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_set1_epi8(1), v[i]));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// Stores a row of some blocks, one lane per block.
void StoreRow(const RoundedBlocks& blocks, __m256i row, int64_t index) {
  int32_t* to = blocks.rows + index * blocks.tokens;
  if (blocks.tokens == kRoundedBlocks) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), row);
  alignas(32) int32_t numbers[kRoundedBlocks];
  _mm256_store_si256(reinterpret_cast<__m256i*>(numbers), row);
  for (int i = 0; i < blocks.count(); i += blocks.tokens, to += blocks.block_numbers)
    for (int t = 0; t < blocks.tokens; ++t) to[t] = numbers[i + t];
}
void StoreRow(const RoundedBlocks& blocks, __m256 row, int64_t index) { StoreRow(blocks, _mm256_castps_si256(row), index); }

// Rounds as ggml does: multiplies by 127 / largest, ties to even, and stores the scale in 16 bits.
void RoundBlocks(const RoundedBlocks& blocks, const Format& format) {
  constexpr int kParts = 4, kPartLanes = kBlock / kParts;
  const auto part = [&](int block, int i) { return _mm256_loadu_ps(blocks.Values(block) + i * kPartLanes); };
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 sizes[kRoundedBlocks];
  for (int b = 0; b < kRoundedBlocks; ++b) {
    sizes[b] = _mm256_setzero_ps();
    for (int i = 0; b < blocks.count() && i < kParts; ++i) sizes[b] = _mm256_max_ps(sizes[b], _mm256_and_ps(part(b, i), no_sign));
  }
  const __m256 largest = LargestOfEach(sizes), most = _mm256_set1_ps(127);
  alignas(32) float inverse[kRoundedBlocks];
  _mm256_store_ps(inverse, _mm256_and_ps(_mm256_div_ps(most, largest), _mm256_cmp_ps(largest, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
  __m256i steps[kRoundedBlocks];  // 0, 2, 4, 6, 1, 3, 5, 7: the order in which packing leaves them
  for (int b = 0; b < kRoundedBlocks; ++b) {
    steps[b] = _mm256_setzero_si256();
    if (b >= blocks.count()) continue;
    const __m256 factor = _mm256_broadcast_ss(inverse + b);
    const auto rounded = [&](int i) { return _mm256_cvtps_epi32(_mm256_mul_ps(part(b, i), factor)); };
    steps[b] = _mm256_packs_epi16(_mm256_packs_epi32(rounded(0), rounded(1)), _mm256_packs_epi32(rounded(2), rounded(3)));
  }
  Transpose(steps);
  const __m256i in_order[kSteps] = {steps[0], steps[4], steps[1], steps[5], steps[2], steps[6], steps[3], steps[7]};
  for (int64_t step = 0; step < kSteps; ++step) StoreRow(blocks, in_order[step], step);
  const __m256 scale = _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_div_ps(largest, most), _MM_FROUND_TO_NEAREST_INT));
  StoreRow(blocks, scale, kScaleRow);
  const __m256i first = SumOfBytes(in_order), second = SumOfBytes(in_order + kSteps / 2), both = _mm256_add_epi32(first, second);
  const auto subtracted = [&](__m256i sum) { return _mm256_mullo_epi32(sum, _mm256_set1_epi32(-format.offset)); };
  if (format.terms == Terms::kMinimum) return StoreRow(blocks, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(both)), kSumRow);
  if (format.terms == Terms::kOffset) return StoreRow(blocks, subtracted(both), kSumRow);
  StoreRow(blocks, subtracted(first), kSumRow);
  StoreRow(blocks, subtracted(second), kSumRow + 1);
}
