// What every kernel variant includes before it defines its `Lanes`.
#pragma once
#include <bit>
#include <cstring>

#include "sampler/float-limits.h"
#include "sampler/kernels.h"
#include "sampler/power-of-two.h"

namespace onpolicy {

// The tables that this build contains; null when the variant is for another architecture.
extern const Kernels* const kScalarKernels;
extern const Kernels* const kAvx2Kernels;
extern const Kernels* const kAvx512Kernels;
extern const Kernels* const kNeonKernels;

}  // namespace onpolicy

#if defined(_MSC_VER) && !defined(__clang__)
#define ONPOLICY_INLINE static __forceinline
#else
#define ONPOLICY_INLINE static inline __attribute__((always_inline))
#endif
