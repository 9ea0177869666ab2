// Kernels for ARM with 8-bit dot products.
#include "kernels/matmul/kernels.h"

#include <type_traits>
#include <utility>

#ifdef ONPOLICY_ARM_PRODUCTS
#include <arm_neon.h>
#include <sys/auxv.h>

#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#pragma GCC optimize("no-schedule-insns")  // GCC 12 would move so many loads ahead that sums leave the registers

namespace onpolicy::matmul {
namespace {

constexpr bool kPairsSteps = false;
constexpr int kTileTokens = 8;
constexpr int TileVectors(int tokens) { return tokens <= 3 ? 2 : 1; }

#include "kernels/matmul/neon-body.h"

bool IsSupported() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }

}  // namespace

constinit const Kernels kDotprodKernels = {"dotprod", IsSupported, Round, kTileTokens, {ONPOLICY_PRODUCT_FORMATS(ONPOLICY_TILES)}};

}  // namespace onpolicy::matmul

#pragma GCC pop_options

#endif
