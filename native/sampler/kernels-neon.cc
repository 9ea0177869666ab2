// The kernels for NEON on 64-bit ARM: 16 lanes are four registers.
#include "sampler/kernels-common.h"

#if defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>

namespace onpolicy {
namespace {

#include "kernels/lanes/neon.h"

ONPOLICY_INLINE uint32_t LowestBit(uint32_t bits) { return static_cast<uint32_t>(std::countr_zero(bits)); }
ONPOLICY_INLINE uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(std::popcount(bits)); }

#include "sampler/kernels-body.h"

}  // namespace

constinit const Kernels kNeonKernels = Table("neon");

}  // namespace onpolicy

#endif
