// Marks a function to be compiled once per instruction set and chosen at load time, if the compiler can do that. Not with sanitizers, because
// the loader chooses before they are initialised.
#pragma once

#include <cstdlib>  // defines __GLIBC__; the loader of glibc can choose

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(ONPOLICY_SANITIZED)
#define ONPOLICY_BEST_TARGET __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ONPOLICY_BEST_TARGET
#endif
