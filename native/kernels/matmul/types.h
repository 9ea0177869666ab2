// All types that are packed, each a struct of this name in one of these headers.
#pragma once
#include "kernels/matmul/floats.h"
#include "kernels/matmul/q4-k.h"
#include "kernels/matmul/q6-k.h"
#include "kernels/matmul/scaled-blocks.h"

#define ONPOLICY_PRODUCT_FORMATS(X) X(Q8_0) X(Q4_0) X(Q4_K) X(Q6_K) X(MXFP4) X(F16) X(BF16) X(F32)

namespace onpolicy::matmul {

enum FormatIndex {
#define ONPOLICY_INDEX(name) k##name,
  ONPOLICY_PRODUCT_FORMATS(ONPOLICY_INDEX)
#undef ONPOLICY_INDEX
      kFormatCount
};
inline constexpr Format kFormats[kFormatCount] = {
#define ONPOLICY_FORMAT(name)                                                                                       \
  {GGML_TYPE_##name, k##name, name::kGroup, name::kGroupBytes, name::kTerms, name::kOffset, name::PanelBytes, name::Pack, \
   name::Unpack},
    ONPOLICY_PRODUCT_FORMATS(ONPOLICY_FORMAT)
#undef ONPOLICY_FORMAT
};

// Returns null if ggml computes matmuls of this type.
inline const Format* FormatOf(ggml_type type) {
  for (const Format& format : kFormats)
    if (format.type == type) return &format;
  return nullptr;
}

}  // namespace onpolicy::matmul
