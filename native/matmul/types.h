// All types that are packed, each a struct of this name in a header of its own. One that is added gets its line in both lists here.
#pragma once
#include "matmul/floats.h"
#include "matmul/mxfp4.h"
#include "matmul/q4-0.h"
#include "matmul/q4-k.h"
#include "matmul/q6-k.h"
#include "matmul/q8-0.h"

#define ONPOLICY_PRODUCT_FORMATS(X) X(Q8_0) X(Q4_0) X(Q4_K) X(Q6_K) X(MXFP4) X(F16) X(BF16) X(F32)

namespace onpolicy::matmul {

enum FormatIndex {
#define ONPOLICY_INDEX(name) k##name,
  ONPOLICY_PRODUCT_FORMATS(ONPOLICY_INDEX)
#undef ONPOLICY_INDEX
      kFormatCount
};
extern const Format kFormats[kFormatCount];

}  // namespace onpolicy::matmul
