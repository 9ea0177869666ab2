// Processor -> its kernels.
#include "attention/kernels.h"

namespace onpolicy::attention {

const Kernels* BestKernels() {
  for (const Kernels* kernels : kAllKernels)
    if (kernels && kernels->is_supported()) return kernels;
  return nullptr;
}

}  // namespace onpolicy::attention
