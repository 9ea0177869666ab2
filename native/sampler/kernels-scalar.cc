// The kernels in plain C++: the reference for every other variant, used by unknown processors.
#include <cmath>

#include "sampler/kernels-common.h"

namespace onpolicy {
namespace {

struct Lanes {
  float lane[16];
};
struct Truth {
  uint32_t lane[16];  // all ones or zero
};

template <class Result, class Function>
inline Result Map(Function function) {
  Result result;
  for (int i = 0; i < 16; ++i) result.lane[i] = function(i);
  return result;
}

inline uint32_t AsBits(float value) { return std::bit_cast<uint32_t>(value); }
inline uint32_t AllOnes(bool value) { return value ? ~0u : 0u; }

inline Lanes Load(const float* from) {
  Lanes result;
  std::memcpy(result.lane, from, sizeof result.lane);
  return result;
}
inline void Store(float* to, const Lanes& v) { std::memcpy(to, v.lane, sizeof v.lane); }
inline Lanes Splat(float value) {
  return Map<Lanes>([=](int) { return value; });
}
inline Lanes Add(const Lanes& a, const Lanes& b) {
  return Map<Lanes>([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline Lanes Subtract(const Lanes& a, const Lanes& b) {
  return Map<Lanes>([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline Lanes Fused(const Lanes& a, const Lanes& b, const Lanes& c) {
#if defined(FP_FAST_FMAF)
  return Map<Lanes>([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
#else
  return Map<Lanes>([&](int i) { return power::FusedInSoftware(a.lane[i], b.lane[i], c.lane[i]); });
#endif
}
inline Lanes Max(const Lanes& a, const Lanes& b) {
  return Map<Lanes>([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline Truth AtLeast(const Lanes& a, const Lanes& b) {
  return Map<Truth>([&](int i) { return AllOnes(a.lane[i] >= b.lane[i]); });
}
inline Truth Unordered(const Lanes& a, const Lanes& b) {
  return Map<Truth>([&](int i) { return AllOnes(a.lane[i] != a.lane[i]) | AllOnes(b.lane[i] != b.lane[i]); });
}
inline Truth Never() { return Truth{}; }
inline Truth Either(const Truth& a, const Truth& b) {
  return Map<Truth>([&](int i) { return a.lane[i] | b.lane[i]; });
}
inline Truth FromBits(uint32_t bits) {
  return Map<Truth>([=](int i) { return AllOnes((bits >> i) & 1); });
}
inline uint32_t Bits(const Truth& truth) {
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= (truth.lane[i] & 1u) << i;
  return bits;
}
inline Lanes Choose(const Truth& truth, const Lanes& yes, const Lanes& no) {
  return Map<Lanes>([&](int i) { return truth.lane[i] ? yes.lane[i] : no.lane[i]; });
}
inline Lanes ZeroUnless(const Lanes& v, const Truth& truth) {
  return Map<Lanes>([&](int i) { return std::bit_cast<float>(AsBits(v.lane[i]) & truth.lane[i]); });
}
inline Lanes AddExponent(const Lanes& v, const Lanes& shifted) {
  return Map<Lanes>(
      [&](int i) { return std::bit_cast<float>(AsBits(v.lane[i]) + (AsBits(shifted.lane[i]) << 23)); });
}
inline float ReduceMax(Lanes v) {
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) v.lane[i] = v.lane[i] > v.lane[i + width] ? v.lane[i] : v.lane[i + width];
  return v.lane[0];
}
inline float ReduceAdd(Lanes v) {
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) v.lane[i] += v.lane[i + width];
  return v.lane[0];
}
inline uint32_t LowestBit(uint32_t bits) { return static_cast<uint32_t>(std::countr_zero(bits)); }
inline uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(std::popcount(bits)); }

#include "sampler/kernels-body.h"

}  // namespace

constinit const Kernels kScalarKernels = Table("scalar");

}  // namespace onpolicy
