// A node of ggml's graph -> the plan for it, stored in the last of its parameters, which ggml leaves unused. One thread plans it, and all
// compute it.
#pragma once
#include <ggml.h>

#include <cstring>

namespace onpolicy {

constexpr int32_t kOurs = 0x6F6E706F;     // the mark of a node that is taken over
constexpr int32_t kWaiting = 0x6F6E7077;  // planned, but not computed yet
constexpr int kWords = GGML_MAX_OP_PARAMS / sizeof(int32_t);
constexpr int kMark = kWords - 1;
constexpr int kPending = kMark - 1;
constexpr int kPointer = kMark - 3;
constexpr int kCounters = kMark - 6;  // three words that only Windows uses

inline int32_t& WordOf(const ggml_tensor* node, int index) { return const_cast<ggml_tensor*>(node)->op_params[index]; }

inline void SetPointer(const ggml_tensor* node, const void* pointer) {
  std::memcpy(const_cast<ggml_tensor*>(node)->op_params + kPointer, &pointer, sizeof pointer);
}
inline const void* PointerOf(const ggml_tensor* node) {
  const void* pointer;
  std::memcpy(&pointer, node->op_params + kPointer, sizeof pointer);
  return pointer;
}

// Takes the node over, or leaves it to the engine: then its words are as the engine made them.
inline void Mark(const ggml_tensor* node, bool is_ours) {
  WordOf(node, kMark) = is_ours ? kOurs : 0;
  SetPointer(node, nullptr);
}
inline bool IsMarked(const ggml_tensor* node) { return node->op_params[kMark] == kOurs; }

// A node is pending while it is planned but not computed yet.
inline void SetPending(const ggml_tensor* node) { WordOf(node, kPending) = kWaiting; }
inline bool IsPending(const ggml_tensor* node) { return node->op_params[kPending] == kWaiting; }
inline void EndPending(const ggml_tensor* node) {
  if (IsPending(node)) WordOf(node, kPending) = 0;
}

}  // namespace onpolicy
