// Chooses the fastest sets of this processor. The choice has a file of its own, so that an addon can be linked without the sets.
#include "kernels/attention/kernels.h"
#include "kernels/matmul/kernels.h"

namespace onpolicy {
namespace {

template <typename Sets>
auto BestOf(const Sets& sets) -> typename Sets::value_type {
  for (const auto* kernels : sets)
    if (kernels->is_supported()) return kernels;
  return nullptr;
}

}  // namespace

const matmul::Kernels* matmul::BestKernels() { return BestOf(kAllKernels); }
const attention::Kernels* attention::BestKernels() { return BestOf(kAllKernels); }

}  // namespace onpolicy
