// Functions that are compiled for instructions beyond the baseline: those between ONPOLICY_BEGIN_TARGET("avx2,fma") and ONPOLICY_END_TARGET.
#pragma once

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
