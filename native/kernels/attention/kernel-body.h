// A block of cells -> scores, weights, and sums of weighted values. Every set of kernels includes this file inside its namespace, so that it
// is compiled for its instructions. The set has included the operations of its lanes (../lanes) and defines:
//   kTileSums, kTileRows        sums and rows of a tile of scores, whose sums stay in registers
//   kValueRows, kValueVectors   rows and vectors of a tile of weighted values
//   WidenHalves, WidenSigned    16-bit floats and 8-bit integers in memory -> Lanes
//   WidenHalf                   a 16-bit float in memory -> a float
//   SumAll(sums, to)            kTileSums vectors -> the sums of their lanes
// All sets add in the same order, which is drawn in README.md.

template <CellType kType>
void AttendMany(const Block& block);  // many-rows-body.h

template <CellType kType>
Lanes LoadCell(const uint8_t* cell, int i);
template <>
Lanes LoadCell<CellType::kF16>(const uint8_t* cell, int i) { return WidenHalves(cell + i * 2 * kLanes); }
template <>
Lanes LoadCell<CellType::kQ8_0>(const uint8_t* cell, int i) {
  const uint8_t* block = cell + i / 2 * 34;  // a 16-bit scale and 32 values
  return Multiply(WidenSigned(block + 2 + i % 2 * kLanes), Splat(WidenHalf(block)));
}
template <>
Lanes LoadCell<CellType::kF32>(const uint8_t* cell, int i) { return Load(reinterpret_cast<const float*>(cell) + i * kLanes); }

// Returns e^x for x <= 20, or 0 if it is too small for a normal number.
inline Lanes Exp(Lanes x) {
  constexpr float kSmallest = -87.3365f;
  const Lanes whole = Rounded(Multiply(Max(x, Splat(kSmallest)), Splat(1.44269504f)));
  Lanes rest = Fused(whole, Splat(-0.693359375f), Max(x, Splat(kSmallest)));
  rest = Fused(whole, Splat(2.12194440e-4f), rest);
  Lanes sum = Splat(1.9875691500e-4f);  // Cephes expf
  for (float term : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    sum = Fused(sum, rest, Splat(term));
  sum = Add(Fused(Multiply(sum, rest), rest, rest), Splat(1));
  return ZeroUnless(Multiply(sum, PowerOfTwo(whole)), AtLeast(x, Splat(kSmallest)));
}

// Returns tanh(x) for any x. The error is below 1e-7 for small x.
inline Lanes Tanh(Lanes x) {
  constexpr float kLargest = 9;  // tanh is 1 from here on
  const Lanes bounded = Subtract(Splat(0), Max(Subtract(Splat(0), x), Splat(-kLargest)));
  return Subtract(Splat(1), Divide(Splat(2), Add(Exp(Add(bounded, bounded)), Splat(1))));
}

// Dot products of kRows rows with as many cells as a tile has sums for, into `to`, row by row.
template <CellType kType, int kRows>
inline void Dots(const float* const* q, const uint8_t* const* cells, int vectors, float* to) {
  constexpr int kCells = kTileSums / kRows;
  Lanes sums[kTileSums];
#pragma GCC unroll 16
  for (int i = 0; i < kTileSums; ++i) sums[i] = Splat(0);
  for (int i = 0; i < vectors; ++i) {
    Lanes x[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) x[r] = Load(q[r] + i * kLanes);
#pragma GCC unroll 16
    for (int c = 0; c < kCells; ++c) {
      const Lanes key = LoadCell<kType>(cells[c], i);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r * kCells + c] = Fused(x[r], key, sums[r * kCells + c]);
    }
  }
  SumAll(sums, to);
}

// Calls the template Work<rows>(row), for whole tiles of rows first, then for pairs and single rows.
template <int kTile, typename Work>
inline void ForTiles(int rows, const Work& work) {
  int row = 0;
  for (; rows - row >= kTile; row += kTile) work.template operator()<kTile>(row);
  if constexpr (kTile > 2)
    for (; rows - row >= 2; row += 2) work.template operator()<2>(row);
  for (; row < rows; ++row) work.template operator()<1>(row);
}

// Functions that only prefetch must be inlined, because GCC drops calls of them as calls without effect.
#define ONPOLICY_FETCHES __attribute__((always_inline)) inline void

ONPOLICY_FETCHES Fetch(const uint8_t* cell, int bytes) {
  constexpr int kLineBytes = 64, kSecondCache = 2;
  for (int byte = 0; byte < bytes; byte += kLineBytes) __builtin_prefetch(cell + byte, 0, kSecondCache);
}

// Returns the cell at place `at` of the block, or the last one.
inline const uint8_t* CellOf(const uint8_t* cells, size_t stride, const Block& block, int at) {
  return cells + static_cast<size_t>(block.index[at < block.end ? at : block.end - 1]) * stride;
}

// Returns the bytes of `vectors` vectors of a cell.
template <CellType kType>
constexpr int BytesOf(int vectors) {
  return vectors * (kType == CellType::kF16 ? 2 * kLanes : kType == CellType::kQ8_0 ? 17 : 4 * kLanes);
}

// Prefetches part `part` of `parts` of the next cells.
template <CellType kType>
ONPOLICY_FETCHES FetchAhead(const Block& block, int part, int parts) {
  const Ahead& ahead = block.ahead;
  for (int i = ahead.count * part / parts; i < ahead.count * (part + 1) / parts; ++i) {
    const auto cell = static_cast<size_t>(ahead.cells[i]);
    Fetch(ahead.k + cell * block.k_stride, BytesOf<kType>(block.k_vectors));
    Fetch(ahead.v + cell * block.v_stride, BytesOf<kType>(block.v_vectors));
  }
}

// Dot products of kRows rows from `row` on with the block's cells. Meanwhile the first rows prefetch the next cells.
template <CellType kType, int kRows>
void Score(const Block& block, int row) {
  constexpr int kCells = kTileSums / kRows;
  for (int at = block.first / kCells * kCells; at < block.end; at += kCells) {
    if (row == 0) FetchAhead<kType>(block, at / kCells, kBlockCells / kCells);
    const uint8_t* cells[kCells];
    for (int c = 0; c < kCells; ++c) cells[c] = CellOf(block.k, block.k_stride, block, at + c);
    float scores[kTileSums];
    Dots<kType, kRows>(block.q + row, cells, block.k_vectors, scores);
    for (int r = 0; r < kRows; ++r)
      __builtin_memcpy(block.scores + (row + r) * kBlockCells + at, scores + r * kCells, sizeof(float) * kCells);
  }
}

// Returns bits: bit i is 1 if the row sees the cell at place i of the block.
inline uint64_t SeenBy(const Block& block, int row) {
  const uint64_t read = ~uint64_t{0} << block.first & ~uint64_t{0} >> (kBlockCells - block.end);
  return block.seen ? block.seen[row / block.heads] & read : read;
}

// Scores of one row -> weights relative to the largest score so far. Sums of earlier blocks are rescaled to it.
inline void Weigh(const Block& block, int row) {
  float* scores = block.scores + row * kBlockCells;
  constexpr int kVectors = kBlockCells / kLanes;
  constexpr float kUnseen = -__builtin_inff();
  float scale = block.scale;
  if (block.cap != 0) {
    const Lanes cap = Splat(block.cap), to_cap = Splat(scale / block.cap);
    for (int i = 0; i < kVectors; ++i)
      Store(scores + i * kLanes, Multiply(Tanh(Multiply(Load(scores + i * kLanes), to_cap)), cap));
    scale = 1;
  }
  const uint64_t seen = SeenBy(block, row);
  Lanes scaled[kVectors], most = Splat(kUnseen);
  for (int i = 0; i < kVectors; ++i) {
    const auto bits = static_cast<uint16_t>(seen >> (i * kLanes));
    scaled[i] = Choose(FromBits(bits), Multiply(Load(scores + i * kLanes), Splat(scale)), Splat(kUnseen));
    most = Max(most, scaled[i]);
  }
  const float largest = ReduceMax(most), before = block.largest[row];
  if (largest == kUnseen) {
    for (int i = 0; i < kVectors; ++i) Store(scores + i * kLanes, Splat(0));
    return;
  }
  float* sums = block.sums + row * kLanes;
  if (largest > before) {
    block.largest[row] = largest;
    const Lanes factor = Exp(Splat(before - largest));
    Store(sums, Multiply(Load(sums), factor));
    float* y = block.y + row * block.v_vectors * kLanes;
    for (int i = 0; i < block.v_vectors; ++i) Store(y + i * kLanes, Multiply(Load(y + i * kLanes), factor));
  }
  const Lanes reference = Splat(block.largest[row]);
  Lanes sum = Load(sums);
  for (int i = 0; i < kVectors; ++i) {
    const Lanes weights = Exp(Subtract(scaled[i], reference));
    Store(scores + i * kLanes, weights);
    sum = Add(sum, weights);
  }
  Store(sums, sum);
}

// Adds the weighted values of all cells: kVectors vectors from `vector` on of kRows rows.
template <CellType kType, int kRows, int kVectors>
void AddValues(const Block& block, int row, int vector) {
  float* y = block.y + (row * block.v_vectors + vector) * kLanes;
  const int stride = block.v_vectors * kLanes;
  const float* weights = block.scores + row * kBlockCells;
  Lanes sums[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) sums[r][i] = Load(y + r * stride + i * kLanes);
  for (int c = block.first; c < block.end; ++c) {
    const uint8_t* cell = block.v + static_cast<size_t>(block.index[c]) * block.v_stride;
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const Lanes value = LoadCell<kType>(cell, vector + i);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) sums[r][i] = Fused(Splat(weights[r * kBlockCells + c]), value, sums[r][i]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) Store(y + r * stride + i * kLanes, sums[r][i]);
}

template <CellType kType, int kRows, int kVectors>
void AddRows(const Block& block, int row, int vector = 0) {
  for (; block.v_vectors - vector >= kVectors; vector += kVectors) AddValues<kType, kRows, kVectors>(block, row, vector);
  if constexpr (kVectors > 1) AddRows<kType, kRows, kVectors / 2>(block, row, vector);
}

template <CellType kType>
void Attend(const Block& block) {
  if (block.rows >= kLeastManyRows) return AttendMany<kType>(block);
  ForTiles<kTileRows>(block.rows, [&]<int kRows>(int row) { Score<kType, kRows>(block, row); });
  for (int row = 0; row < block.rows; ++row) Weigh(block, row);
  ForTiles<kValueRows>(block.rows, [&]<int kRows>(int row) {
    AddRows<kType, kRows, kRows == kValueRows ? kValueVectors : 2 * kValueVectors>(block, row);
  });
}

float Sum(const float* lanes) { return ReduceAdd(Load(lanes)); }

template <int kTokens>
void NarrowTokens(const float* factor, int64_t size, int count, const Rows& x, int64_t token, float* y, size_t y_stride) {
  constexpr int kCells = kTileSums / kTokens;
  const float* tokens[kTokens];
  for (int t = 0; t < kTokens; ++t) tokens[t] = x.data + static_cast<size_t>(token + t) * x.stride;
  for (int row = 0; row < count; row += kCells) {
    const uint8_t* rows[kCells];
    const int here = count - row < kCells ? count - row : kCells;
    for (int c = 0; c < kCells; ++c) rows[c] = reinterpret_cast<const uint8_t*>(factor + (row + (c < here ? c : here - 1)) * size);
    float sums[kTileSums];
    Dots<CellType::kF32, kTokens>(tokens, rows, static_cast<int>(size / kLanes), sums);
    for (int t = 0; t < kTokens; ++t)
      for (int c = 0; c < here; ++c) y[static_cast<size_t>(token + t) * y_stride + static_cast<size_t>(row + c)] = sums[t * kCells + c];
  }
}

void Narrow(const float* factor, int64_t size, int count, Rows x, float* y, size_t y_stride) {
  int64_t token = 0;
  for (; x.tokens - token >= kTileRows; token += kTileRows) NarrowTokens<kTileRows>(factor, size, count, x, token, y, y_stride);
  for (; token < x.tokens; ++token) NarrowTokens<1>(factor, size, count, x, token, y, y_stride);
}

template <int kTokens>
void WidenTokens(const float* factor, size_t factor_stride, int64_t rank, const Rows& h, int64_t token, float* y, size_t y_stride) {
  const float* from = h.data + static_cast<size_t>(token) * h.stride;
  Lanes sums[kTokens];
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) sums[t] = Splat(0);
  for (int64_t r = 0; r < rank; ++r) {
    const Lanes column = Load(factor + static_cast<size_t>(r) * factor_stride);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) sums[t] = Fused(Splat(from[static_cast<size_t>(t) * h.stride + static_cast<size_t>(r)]), column, sums[t]);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTokens; ++t) Store(y + static_cast<size_t>(token + t) * y_stride, sums[t]);
}

void Widen(const float* factor, size_t factor_stride, int64_t rank, Rows h, float* y, size_t y_stride) {
  int64_t token = 0;
  for (; h.tokens - token >= 4; token += 4) WidenTokens<4>(factor, factor_stride, rank, h, token, y, y_stride);
  for (; token < h.tokens; ++token) WidenTokens<1>(factor, factor_stride, rank, h, token, y, y_stride);
}
