// Like kernel-body.h, for blocks whose cells many rows read, as in a prompt: cells are converted to floats once for all rows. A lane of a sum
// is then computed for as many cells as a vector has lanes, and lanes are added by adding vectors: the same sums in the same order. The set
// also defines:
//   kScoreRows, kScoreVectors   rows and vectors of a tile of scores; two lanes are computed at a time
//   kManyRows, kManyVectors     rows and vectors of a tile of weighted values
//   Transpose(square)           kLanes vectors

constexpr int kHalf = kLanes / 2;
constexpr int kLaneOrder[kHalf] = {0, 4, 2, 6, 1, 5, 3, 7};  // each with the lane kHalf after it; sums 4, 2 and 1 apart are then neighbours
constexpr int kLevels = 3;                                   // of adding neighbours

constexpr auto kInOrder = [] {
  std::array<int32_t, kBlockCells> places{};
  for (int i = 0; i < kBlockCells; ++i) places[i] = i;
  return places;
}();

// Keys -> keys of all cells by lane: (kLanes, k_vectors, kBlockCells).
template <CellType kType>
void SpreadKeys(const Block& block) {
  for (int at = block.first / kLanes * kLanes; at < block.end; at += kLanes) {
    const uint8_t* cells[kLanes];
    for (int c = 0; c < kLanes; ++c) cells[c] = CellOf(block.k, block.k_stride, block, at + c);
    for (int i = 0; i < block.k_vectors; ++i) {
      Lanes square[kLanes];
#pragma GCC unroll 16
      for (int c = 0; c < kLanes; ++c) square[c] = LoadCell<kType>(cells[c], i);
      Transpose(square);
      float* to = block.keys + i * kBlockCells + at;
#pragma GCC unroll 16
      for (int lane = 0; lane < kLanes; ++lane) Store(to + lane * block.k_vectors * kBlockCells, square[lane]);
    }
  }
}

// Values -> numbers: (kBlockCells, v_vectors * kLanes).
template <CellType kType>
void WidenValues(const Block& block) {
  const int vectors = block.v_vectors, end = block.end;
  for (int c = block.first; c < end; ++c) {
    const uint8_t* cell = CellOf(block.v, block.v_stride, block, c);
    float* to = block.values + c * vectors * kLanes;
    for (int i = 0; i < vectors; ++i) Store(to + i * kLanes, LoadCell<kType>(cell, i));
  }
}

// Scores of kRows rows from `row` on with kVectors vectors of cells from `at` on. kKeyVectors is k_vectors if loops are unrolled for it, or 0 for any.
template <int kRows, int kVectors, int kKeyVectors>
void ScoreTile(const Block& block, int row, int at) {
  constexpr int kSums = kRows * kVectors;
  const int key_vectors = kKeyVectors > 0 ? kKeyVectors : block.k_vectors;
  Lanes added[kLevels + 1][kSums];  // [n]: sums of 2^(n + 1) lanes that wait for their neighbours
  const size_t lane_keys = static_cast<size_t>(key_vectors) * kBlockCells;
  for (int step = 0; step < kHalf; ++step) {
    const int lane = kLaneOrder[step];
    const float *keys = block.keys + lane * lane_keys + at, *other_keys = keys + kHalf * lane_keys;
    Lanes sums[kSums], others[kSums];
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sums[i] = others[i] = Splat(0);
#pragma GCC unroll 8
    for (int i = 0; i < key_vectors; ++i) {
      Lanes key[kVectors], other_key[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        key[v] = Load(keys + i * kBlockCells + v * kLanes);
        other_key[v] = Load(other_keys + i * kBlockCells + v * kLanes);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const float* q = block.q[row + r] + i * kLanes + lane;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          sums[r * kVectors + v] = Fused(Splat(q[0]), key[v], sums[r * kVectors + v]);
          others[r * kVectors + v] = Fused(Splat(q[kHalf]), other_key[v], others[r * kVectors + v]);
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sums[i] = Add(sums[i], others[i]);
    int level = 0;
    for (; step >> level & 1; ++level)
#pragma GCC unroll 16
      for (int i = 0; i < kSums; ++i) sums[i] = Add(added[level][i], sums[i]);
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) added[level][i] = sums[i];
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      Store(block.scores + (row + r) * kBlockCells + at + v * kLanes, added[kLevels][r * kVectors + v]);
}

// Sets the first and the end of the block to the cells that any of kRows rows sees. Returns false if they see none.
template <int kRows>
bool SeesAny(int row, Block* block) {
  uint64_t seen = 0;
  for (int r = 0; r < kRows; ++r) seen |= SeenBy(*block, row + r);
  if (!seen) return false;
  block->first = __builtin_ctzll(seen);
  block->end = kBlockCells - __builtin_clzll(seen);
  return true;
}

template <CellType kType, int kKeyVectors>
void ScoreMany(const Block& block) {
  constexpr int kCells = kScoreVectors * kLanes;
  ForTiles<kScoreRows>(block.rows, [&]<int kRows>(int row) {
    for (int r = row; r < row + kRows; ++r) FetchAhead<kType>(block, r, block.rows);
    Block part = block;
    if (!SeesAny<kRows>(row, &part)) return;
    for (int at = part.first / kCells * kCells; at < part.end; at += kCells) ScoreTile<kRows, kScoreVectors, kKeyVectors>(block, row, at);
  });
}

template <CellType kType>
void AttendMany(const Block& block) {
  SpreadKeys<kType>(block);
  if (block.k_vectors == 8) ScoreMany<kType, 8>(block);  // heads of 128 numbers; of 64
  else if (block.k_vectors == 4) ScoreMany<kType, 4>(block);
  else ScoreMany<kType, 0>(block);
  for (int row = 0; row < block.rows; ++row) Weigh(block, row);
  WidenValues<kType>(block);
  ForTiles<kManyRows>(block.rows, [&]<int kRows>(int row) {
    Block part = block;
    if (!SeesAny<kRows>(row, &part)) return;
    part.v = reinterpret_cast<const uint8_t*>(block.values);
    part.v_stride = static_cast<size_t>(block.v_vectors) * kLanes * sizeof(float);
    part.index = kInOrder.data();
    AddRows<CellType::kF32, kRows, kRows == kManyRows ? kManyVectors : 2 * kValueVectors>(part, row);
  });
}
