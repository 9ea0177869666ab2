// Media of a step as JavaScript gives them.
#pragma once
#include <napi.h>

#include <vector>

#include "llama/step-input.h"

namespace onpolicy {

// [{ at, count, rows, first, positions, isNonCausal }], `rows` as `encode` of a projector gave it.
std::vector<MediaRows> ReadMediaRows(Napi::Value value);

}  // namespace onpolicy
