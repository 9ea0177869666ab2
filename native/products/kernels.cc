// Processor -> its kernels.
#include "products/kernels.h"

#include <cstdlib>
#include <string>

namespace onpolicy::products {

const Kernels* BestKernels() {
  const char* most = std::getenv("ONPOLICY_PRODUCTS");
  const std::string wanted = most ? most : "";
  bool is_allowed = wanted.empty();
  for (const Kernels* kernels : kAllKernels) {
    if (!kernels) continue;
    is_allowed |= wanted == kernels->name;
    if (is_allowed && kernels->is_supported()) return kernels;
  }
  return nullptr;
}

}  // namespace onpolicy::products
