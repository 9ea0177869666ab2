// Functions that are compiled for instructions beyond the baseline: those between ONPOLICY_BEGIN_TARGET("avx2,fma") and ONPOLICY_END_TARGET,
// and those that ONPOLICY_BEST_TARGET marks.
#pragma once

#include <cstdlib>  // defines __GLIBC__; the loader of glibc can choose

#define ONPOLICY_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define ONPOLICY_BEGIN_TARGET(features) \
  ONPOLICY_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define ONPOLICY_END_TARGET ONPOLICY_PRAGMA(clang attribute pop)
#elif defined(__GNUC__)
#define ONPOLICY_BEGIN_TARGET(features) ONPOLICY_PRAGMA(GCC push_options) ONPOLICY_PRAGMA(GCC target(features))
#define ONPOLICY_END_TARGET ONPOLICY_PRAGMA(GCC pop_options)
// GCC 12 warns of undefined vectors in its own headers, which are intended.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#else
#define ONPOLICY_BEGIN_TARGET(features)
#define ONPOLICY_END_TARGET
#endif

// Marks a function to be compiled once per instruction set and chosen at load time, if the compiler can do that. Not with sanitizers, because
// the loader chooses before they are initialised.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(ONPOLICY_SANITIZED)
#define ONPOLICY_BEST_TARGET __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ONPOLICY_BEST_TARGET
#endif
