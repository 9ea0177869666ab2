// Processor -> its kernels.
#include "matmul/kernels.h"

namespace onpolicy::matmul {

const Kernels* BestKernels() {
  for (const Kernels* kernels : kAllKernels)
    if (kernels && kernels->is_supported()) return kernels;
  return nullptr;
}

}  // namespace onpolicy::matmul
