// Marks a function to be compiled once per instruction set, chosen at load time, where the compiler can do that.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define ONPOLICY_BEST_TARGET __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ONPOLICY_BEST_TARGET
#endif
