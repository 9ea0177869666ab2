// Marks functions that use AVX-512 with 8-bit dot products, where the compiler can build them beside others.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ONPOLICY_AVX512 __attribute__((target("f16c,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
// GCC 12 takes undefined vectors in its own headers, which are meant, for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace onpolicy::training {

// Whether this processor has these instructions.
inline bool HasAvx512() {
#ifdef ONPOLICY_AVX512
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni");
  return has;
#else
  return false;
#endif
}

}  // namespace onpolicy::training
