// A node of ggml's graph -> what was planned for it, in the last of its parameters, which ggml leaves unused. It is planned on one thread,
// and computed on all.
#pragma once
#include <cstring>

#include "matmul/cpu-backend.h"

namespace onpolicy::attention {

constexpr int32_t kOurs = 0x6F6E706F;  // the mark of a node that is taken over
constexpr int kMark = GGML_MAX_OP_PARAMS / sizeof(int32_t) - 1;
constexpr int kPending = kMark - 1;
constexpr int kPointer = kMark - 3;

inline int32_t& MarkOf(const ggml_tensor* node) { return const_cast<ggml_tensor*>(node)->op_params[kMark]; }
// Whether it is planned, but not computed yet.
inline int32_t& IsPending(const ggml_tensor* node) { return const_cast<ggml_tensor*>(node)->op_params[kPending]; }

inline void SetPointer(const ggml_tensor* node, const void* pointer) {
  std::memcpy(const_cast<ggml_tensor*>(node)->op_params + kPointer, &pointer, sizeof pointer);
}
inline const void* PointerOf(const ggml_tensor* node) {
  const void* pointer;
  std::memcpy(&pointer, node->op_params + kPointer, sizeof pointer);
  return pointer;
}

}  // namespace onpolicy::attention
