// The release of llama.cpp that was opened.
#pragma once
#include <cstdio>
#include <tuple>

#include "base/engine.h"

namespace onpolicy {

// Returns true if the opened llama.cpp is of this version or a newer one.
inline bool IsEngineSince(int major, int minor, int patch) {
  int found[3] = {};
  std::sscanf(Api().version.c_str(), "%d.%d.%d", &found[0], &found[1], &found[2]);
  return std::tie(found[0], found[1], found[2]) >= std::tie(major, minor, patch);
}

// Delta nets divide keys and queries by the square root of (sum of squares + epsilon) since 0.5.0; before, by max(length, epsilon).
inline bool IsEpsilonInDeltaNetNorm() { return IsEngineSince(0, 5, 0); }

}  // namespace onpolicy
