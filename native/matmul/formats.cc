// A type of ggml -> its format.
#include "matmul/types.h"

namespace onpolicy::matmul {

const Format kFormats[kFormatCount] = {
#define ONPOLICY_FORMAT(name)                                                                                       \
  {GGML_TYPE_##name, k##name, name::kGroup, name::kGroupBytes, name::kTerms, name::kOffset, name::PanelBytes, name::Pack, \
   name::Unpack},
    ONPOLICY_PRODUCT_FORMATS(ONPOLICY_FORMAT)
#undef ONPOLICY_FORMAT
};

const Format* FormatOf(ggml_type type) {
  for (const Format& format : kFormats)
    if (format.type == type) return &format;
  return nullptr;
}

}  // namespace onpolicy::matmul
