// The kernels for AVX-512F: 16 lanes are one register, and a boolean per lane is a mask register.
#include "sampler/kernels-common.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#if defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ >= 18 && __clang_major__ < 22
// In these compiler releases, registers of 512 bits are a separate feature.
ONPOLICY_BEGIN_TARGET("avx512f,evex512,avx2,fma,popcnt,bmi")
#else
ONPOLICY_BEGIN_TARGET("avx512f,avx2,fma,popcnt,bmi")
#endif

namespace onpolicy {
namespace {

#include "kernels/lanes/avx512.h"

ONPOLICY_INLINE uint32_t LowestBit(uint32_t bits) { return _tzcnt_u32(bits); }
ONPOLICY_INLINE uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(_mm_popcnt_u32(bits)); }

#include "sampler/kernels-body.h"

}  // namespace

constinit const Kernels kAvx512Kernels = Table("avx512");

}  // namespace onpolicy

ONPOLICY_END_TARGET

#endif
