// Kernels for ARM with 8-bit matmuls of two rows by two tokens.
#include "matmul/kernels.h"

namespace onpolicy::matmul {

const Kernels* const kI8mmKernels = nullptr;

}  // namespace onpolicy::matmul
