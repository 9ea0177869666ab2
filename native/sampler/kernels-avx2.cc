// The kernels for AVX2 with FMA: 16 lanes are two registers.
#include "sampler/kernels-common.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

ONPOLICY_BEGIN_TARGET("avx2,fma,popcnt,bmi")

namespace onpolicy {
namespace {

#include "kernels/lanes/avx2.h"

ONPOLICY_INLINE uint32_t LowestBit(uint32_t bits) { return _tzcnt_u32(bits); }
ONPOLICY_INLINE uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(_mm_popcnt_u32(bits)); }

#include "sampler/kernels-body.h"

}  // namespace

constinit const Kernels kAvx2Kernels = Table("avx2");

}  // namespace onpolicy

ONPOLICY_END_TARGET

#endif
