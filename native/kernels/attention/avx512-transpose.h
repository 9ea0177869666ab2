// Included by kernels for AVX-512 within their instruction set and namespace.

// Transposes 16 vectors, first within groups of four, then the groups: number j of vector i becomes number i of vector j.
inline void Transpose(__m512* square) {
  __m512 pairs[16], fours[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(square[i], square[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(square[i], square[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    fours[i] = _mm512_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm512_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
    fours[i + 2] = _mm512_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm512_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0x88), b = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0xDD), d = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0xDD);
    square[i] = _mm512_shuffle_f32x4(a, b, 0x88);
    square[i + 4] = _mm512_shuffle_f32x4(c, d, 0x88);
    square[i + 8] = _mm512_shuffle_f32x4(a, b, 0xDD);
    square[i + 12] = _mm512_shuffle_f32x4(c, d, 0xDD);
  }
}
