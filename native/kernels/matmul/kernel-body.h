// Packed blocks -> the vectors that tiles multiply, tiles, and the loop that rounds activations. Every set of kernels includes this file
// inside its namespace, so that it is compiled for its instructions. The set defines its vectors and their operations:
//   Bytes, Ints, Floats         vectors of kLanes rows: four bytes, a 32-bit integer or float of each
//   kTileVectors(tokens)        number of vectors in a tile for so many tokens: all rows of a panel or a part
//   LoadBytes, LowBits<mask>(bytes), Shifted<bits>(bytes): to the right, with bits of a neighbour or zeros; ShiftedLeft; HighHalves(bytes);
//                               Joined(a, b): bits of either
//   WidenHalves, WidenUpper, WidenUnsigned, WidenSigned: 16-bit floats, upper halves of floats and 8-bit integers in memory -> Floats
//   StepOf<step, token, tokens>(group), ValueAt<place>(column): four bytes, a float of a token, for all rows
//   Dot<largest, step>(dots, held, weights, StepOf): adds a step's products to dots, or to held; weights are at most `largest`;
//                               255 means signed weights, on x64 plus 128
//   LookedUp(bytes, numbers)    bytes below 16 -> their numbers
//   WidenExponents              bytes e in memory -> 2^(e - 128)
//   kSubtractsWide              true if products of 8-bit weights exclude the 128, so that it is not subtracted later
//   RoundedToHalf               Floats -> the nearest 16-bit floats, as Floats
//   RoundBlocks, kRoundedBlocks rounds some blocks of activations to 8 bits, at most so many at a time
// README.md describes a tile.

// Rounds to the upper 16 bits: to nearest, ties to even. NaN stays NaN.
float RoundedToUpper(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return x;
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

// Rounds the values of a block of each token to the type of the weights, as ggml does.
void RoundFloats(const float* const* x, int64_t block, int tokens, const Format& format, int32_t* rows) {
  for (int t = 0; t < tokens; ++t) {
    float rounded[kBlock];
    for (int64_t i = 0; i < kBlock; i += kLanes) {
      const Floats values = LoadFloats(x[t] + block * kBlock + i);
      StoreFloats(format.type == GGML_TYPE_F16 ? RoundedToHalf(values) : values, rounded + i);
    }
    if (format.type == GGML_TYPE_BF16)
      for (float& value : rounded) value = RoundedToUpper(value);
    for (int64_t i = 0; i < kBlock; ++i) __builtin_memcpy(rows + i * tokens + t, rounded + i, 4);
  }
}

void Round(const float* const* x, int tokens, int64_t first, int64_t last, const Format& format, int32_t* group) {
  const int64_t numbers = RowsOf(format.terms) * tokens;  // of a block
  const bool are_floats = format.terms == Terms::kFloats;
  const int64_t together = are_floats ? 1 : kRoundedBlocks / tokens;
  for (int64_t b = first; b < last; b += together) {
    int32_t* const rows = group + b * numbers;
    const int blocks = static_cast<int>(last - b < together ? last - b : together);
    if (are_floats) RoundFloats(x, b, tokens, format, rows);
    else RoundBlocks({x, b, tokens, blocks, rows, numbers}, format);
  }
}

// The blocks of a panel from a row on: the weights of each step and their scales.
template <typename Type>
class Blocks;

// Blocks of types that have values and scales in each block.
template <typename Type>
class Plain {
 public:
  Plain(const uint8_t* panel, int64_t row) : panel_(panel), row_(row) {}
  const uint8_t* At(int64_t b) const { return panel_ + b * Type::kStride + row_ * 4; }
  Floats Scale(int64_t b, int) const { return WidenHalves(ScaleAt(b)); }

 protected:
  const uint8_t* ScaleAt(int64_t b) const {
    return panel_ + b * Type::kStride + Type::kScalesAt + row_ * (Type::kStride - Type::kScalesAt) / kPanel;
  }

 private:
  const uint8_t* panel_;
  const int64_t row_;
};

template <>
class Blocks<Q8_0> : public Plain<Q8_0> {
 public:
  using Plain::Plain;
  template <int kStep>
  Bytes Weights(int64_t b) const { return LoadBytes(At(b) + kStep * kStepBytes); }
};

// Step v is in the low halves of bytes, v + 4 in the high halves.
template <int kStep>
Bytes FourBits(const uint8_t* block) {
  const Bytes both = LoadBytes(block + kStep % 4 * kStepBytes);
  if constexpr (kStep < 4) return LowBits<15>(both);
  else return HighHalves(both);
}

template <>
class Blocks<Q4_0> : public Plain<Q4_0> {
 public:
  using Plain::Plain;
  template <int kStep>
  Bytes Weights(int64_t b) const { return FourBits<kStep>(At(b)); }
};

template <>
class Blocks<MXFP4> : public Plain<MXFP4> {
 public:
  using Plain::Plain;
  template <int kStep>
  Bytes Weights(int64_t b) const { return LookedUp(FourBits<kStep>(At(b)), MXFP4::kNumbers); }
  Floats Scale(int64_t b, int) const { return WidenExponents(ScaleAt(b)); }
};

// Blocks of types that have groups with scales of scales.
template <typename Type>
class Grouped {
 public:
  Grouped(const uint8_t* panel, int64_t row) : panel_(panel), row_(row) {}
  const uint8_t* At(int64_t b) const { return Block(b) + row_ * 4; }

 protected:
  // Returns the product of two numbers of each row: 16 bits at an offset of the group, 8 bits at an offset of the block.
  template <bool kIsSigned>
  Floats Scaled(int64_t b, int64_t in_group, int64_t in_block) const {
    const uint8_t* bytes = Block(b) + in_block + row_;
    return Multiply(WidenHalves(Group(b) + in_group + row_ * 2), kIsSigned ? WidenSigned(bytes) : WidenUnsigned(bytes));
  }

 private:
  const uint8_t* Group(int64_t b) const { return panel_ + b / Type::kGroupBlocks * Type::kStride; }
  const uint8_t* Block(int64_t b) const { return Group(b) + Type::kFirstBlockAt + b % Type::kGroupBlocks * Type::kBlockStride; }
  const uint8_t* panel_;
  const int64_t row_;
};

template <>
class Blocks<Q4_K> : public Grouped<Q4_K> {
 public:
  using Grouped::Grouped;
  template <int kStep>
  Bytes Weights(int64_t b) const { return FourBits<kStep>(At(b)); }
  Floats Scale(int64_t b, int) const { return Scaled<false>(b, 0, Q4_K::kScalesAt); }
  Floats Minimum(int64_t b) const { return Scaled<false>(b, kHalfBytes, Q4_K::kMinimaAt); }
};

template <>
class Blocks<Q6_K> : public Grouped<Q6_K> {
 public:
  using Grouped::Grouped;
  template <int kStep>
  Bytes Weights(int64_t b) const {
    const Bytes pairs = LoadBytes(At(b) + kStep % 2 * kStepBytes);
    const Bytes low = FourBits<kStep>(At(b) + Q6_K::kLowAt);
    constexpr int kRight = kStep / 2 * 2 - 4;  // shift of the step's pair to bit 4
    if constexpr (kRight < 0) return Joined(low, LowBits<48>(ShiftedLeft<-kRight>(pairs)));
    else return Joined(low, LowBits<48>(Shifted<kRight>(pairs)));
  }
  Floats Scale(int64_t b, int part) const { return Scaled<true>(b, 0, Q6_K::kScalesAt + part * kPanel); }
};

#define ONPOLICY_INLINED __attribute__((always_inline))

// Calls `work` with each constant of [0, kCount).
template <int kCount, typename Work>
inline ONPOLICY_INLINED void Repeat(const Work& work) {
  [&]<int... kIndices>(std::integer_sequence<int, kIndices...>) ONPOLICY_INLINED {
    (work(std::integral_constant<int, kIndices>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

// Called with each block. Prefetches the next lines of the weights that are multiplied next.
inline ONPOLICY_INLINED void FetchAhead(const TileInput& input, const uint8_t** ahead) {
  constexpr int kSecondCache = 2;
  for (const uint8_t* end = *ahead + input.ahead_lines * kLineBytes; *ahead != end; *ahead += kLineBytes)
    __builtin_prefetch(*ahead, 0, kSecondCache);
}

// The sums of kVectors vectors of rows x kTokens tokens: in registers, or in the first cache if registers cannot hold them and a block's.
template <int kVectors, int kTokens>
class Sums {
 public:
  Sums() {
    ForEach([&](int v, int t) ONPOLICY_INLINED { Set(v, t, SetFloats(0)); });
  }
  ONPOLICY_INLINED Floats At(int v, int t) const {
    if constexpr (kAreKept) return kept_[v][t];
    else return LoadFloats(memory_[v][t]);
  }
  ONPOLICY_INLINED void Set(int v, int t, Floats value) {
    if constexpr (kAreKept) kept_[v][t] = value;
    else StoreFloats(value, memory_[v][t]);
  }
  ONPOLICY_INLINED void StoreAt(float* y, int64_t stride) const {
    ForEach([&](int v, int t) ONPOLICY_INLINED { StoreFloats(At(v, t), y + t * stride + v * kLanes); });
  }

 private:
  static constexpr bool kAreKept = kVectors * kTokens <= 12;
  template <typename Work>
  static ONPOLICY_INLINED void ForEach(const Work& work) {
    Repeat<kVectors>([&](auto v) ONPOLICY_INLINED { Repeat<kTokens>([&](auto t) ONPOLICY_INLINED { work(v, t); }); });
  }

  Floats kept_[kAreKept ? kVectors : 1][kAreKept ? kTokens : 1];
  alignas(64) float memory_[kAreKept ? 1 : kVectors][kAreKept ? 1 : kTokens][kLanes];
};

// Computes kVectors vectors of rows x kTokens tokens, from a row of the first panel on.
template <typename Type, int kVectors, int kTokens>
void RunRows(const TileInput& input, int64_t row) {
  constexpr Terms kTerms = Type::kTerms;
  constexpr bool kStartsAtZero = kTerms == Terms::kMinimum || (Type::kLargest == 255 && kSubtractsWide);
  constexpr int kParts = kTerms == Terms::kHalves ? 2 : 1, kPartSteps = kSteps / kParts;
  const auto panel_of = [&](int64_t v) {
    return Blocks<Type>(input.panel + v * kLanes / kPanel * input.panel_bytes, row + v * kLanes % kPanel);
  };
  const Blocks<Type> panels[] = {panel_of(0), panel_of(kVectors - 1)};
  Sums<kVectors, kTokens> sums;
  const int32_t* group = input.group;
  const uint8_t* ahead = input.ahead;
  for (int64_t b = 0; b < input.blocks; ++b, group += RowsOf(kTerms) * kTokens) {
    const auto* scales = reinterpret_cast<const float*>(group + kScaleRow * kTokens);
    FetchAhead(input, &ahead);
    Repeat<kParts>([&](auto part) ONPOLICY_INLINED {
      Ints dots[kVectors][kTokens], held[kVectors][kTokens];
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) {
        const Ints start = SetInts(kStartsAtZero ? 0 : group[(kSumRow + part) * kTokens + t]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) dots[v][t] = start;
      }
      Repeat<kPartSteps>([&](auto i) ONPOLICY_INLINED {
        constexpr int kStep = decltype(part)::value * kPartSteps + decltype(i)::value;
        Bytes weights[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) weights[v] = panels[v].template Weights<kStep>(b);
        Repeat<kTokens>([&](auto t) ONPOLICY_INLINED {
          const auto step = StepOf<kStep, t, kTokens>(group);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) Dot<Type::kLargest, decltype(i)::value>(dots[v][t], held[v][t], weights[v], step);
        });
      });
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Floats scale = panels[v].Scale(b, part);
#pragma GCC unroll 8
        for (int t = 0; t < kTokens; ++t)
          sums.Set(v, t, Added(ToFloats(dots[v][t]), Multiply(scale, SetFloats(scales[t])), sums.At(v, t)));
      }
    });
    if constexpr (kTerms == Terms::kMinimum)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Floats minimum = panels[v].Minimum(b);
#pragma GCC unroll 8
        for (int t = 0; t < kTokens; ++t) sums.Set(v, t, Subtracted(minimum, SetFloats(scales[kTokens + t]), sums.At(v, t)));
      }
  }
  sums.StoreAt(input.y + row, input.stride);
}

template <typename Type>
Floats LoadNumbers(const uint8_t* from) {
  if constexpr (std::is_same_v<Type, F16>) return WidenHalves(from);
  else if constexpr (std::is_same_v<Type, BF16>) return WidenUpper(from);
  else return LoadFloats(reinterpret_cast<const float*>(from));
}

// Computes kPanels panels of numbers x kTokens tokens. Each block has separate sums, which are added afterwards, so that the next block does
// not wait for them.
template <typename Type, int kPanels, int kTokens>
void RunFloats(const TileInput& input) {
  constexpr int kPanelVectors = kPanel / kLanes, kVectors = kPanels * kPanelVectors;
  constexpr int64_t kColumnBytes = kPanel * Type::kNumberBytes, kVectorBytes = kLanes * Type::kNumberBytes;
  Sums<kVectors, kTokens> sums;
  const auto* x = reinterpret_cast<const float*>(input.group);
  const uint8_t *column = input.panel, *ahead = input.ahead;
  for (int64_t b = 0; b < input.blocks; ++b) {
    FetchAhead(input, &ahead);
    Floats parts[kVectors][kTokens];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) parts[v][t] = SetFloats(0);
    for (int64_t i = 0; i < kBlock; i += 4, x += 4 * kTokens)
      Repeat<4>([&](auto c) ONPOLICY_INLINED {
        Floats weights[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          weights[v] = LoadNumbers<Type>(column + v / kPanelVectors * input.panel_bytes + v % kPanelVectors * kVectorBytes);
        column += kColumnBytes;
        Repeat<kTokens>([&](auto t) ONPOLICY_INLINED {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) parts[v][t] = Added(weights[v], ValueAt<c * kTokens + t>(x), parts[v][t]);
        });
      });
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) sums.Set(v, t, Plus(sums.At(v, t), parts[v][t]));
  }
  sums.StoreAt(input.y, input.stride);
}

// Runs each part of a panel, with kRows rows. The first part prefetches for all.
template <int kRows, typename Run>
void ForEachPart(TileInput input, const Run& run) {
  for (int64_t row = 0; row < kPanel; row += kRows) {
    run(input, row);
    input.ahead_lines = 0;
  }
}

template <typename Type, int kTokens>
void RunTile(const TileInput& input) {
  if constexpr (Type::kTerms == Terms::kFloats) {
    RunFloats<Type, 1, kTokens>(input);
  } else {
    constexpr int kVectors = TileVectors(kTokens);
    ForEachPart<kVectors * kLanes>(input, RunRows<Type, kVectors, kTokens>);
  }
}

// The tiles of a type, by tokens - 1.
template <typename Type, int... kIndices>
constexpr std::array<RunTileFunction*, kMostTokens> TilesOf(std::integer_sequence<int, kIndices...>) {
  return {RunTile<Type, kIndices + 1>...};
}
#define ONPOLICY_TILES(name) TilesOf<name>(std::make_integer_sequence<int, kTileTokens>()),
