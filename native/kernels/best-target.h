// Marks a function to be compiled once per instruction set, chosen at load time, where the compiler can do that.
#pragma once

#include <cstdlib>  // says whether this is glibc, whose loader can choose

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define ONPOLICY_BEST_TARGET __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ONPOLICY_BEST_TARGET
#endif
