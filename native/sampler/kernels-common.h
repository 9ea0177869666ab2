// What every kernel variant includes before it defines its `Lanes`.
#pragma once
#include <bit>
#include <cstring>

#include "base/target.h"
#include "sampler/float-limits.h"
#include "sampler/kernels.h"
#include "sampler/power-of-two.h"

namespace onpolicy {

// The tables that builds contain, each for its architecture.
extern const Kernels kScalarKernels, kAvx2Kernels, kAvx512Kernels, kNeonKernels;

}  // namespace onpolicy

#if defined(_MSC_VER) && !defined(__clang__)
#define ONPOLICY_INLINE static __forceinline
#else
#define ONPOLICY_INLINE static inline __attribute__((always_inline))
#endif
