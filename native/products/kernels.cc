// Processor -> its kernels.
#include "products/kernels.h"

namespace onpolicy::products {

const Kernels* BestKernels() {
  for (const Kernels* kernels : kAllKernels)
    if (kernels && kernels->is_supported()) return kernels;
  return nullptr;
}

}  // namespace onpolicy::products
