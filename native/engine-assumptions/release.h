// The release of llama.cpp that was opened, and another one that this process may have loaded.
#pragma once
#include <cstdio>
#include <string>
#include <tuple>

#include "base/engine.h"

namespace onpolicy {

// Returns the path and version of a loaded llama library of another version, such as "/.../libllama.so (0.5.0)". Returns an empty string if
// there is none. Libraries of one process find each other by name: two releases would call each other's functions.
std::string OtherRelease(const std::string& version);

// Returns true if the opened llama.cpp is of this version or a newer one.
inline bool IsEngineSince(int major, int minor, int patch) {
  int found[3] = {};
  std::sscanf(Api().version.c_str(), "%d.%d.%d", &found[0], &found[1], &found[2]);
  return std::tie(found[0], found[1], found[2]) >= std::tie(major, minor, patch);
}

// Delta nets divide keys and queries by the square root of (sum of squares + epsilon) since 0.5.0; before, by max(length, epsilon).
inline bool IsEpsilonInDeltaNetNorm() { return IsEngineSince(0, 5, 0); }

}  // namespace onpolicy
