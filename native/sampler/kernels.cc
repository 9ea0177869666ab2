// Processor -> the kernel tables it runs. A vector table is used only if it agrees with the scalar one, bit
// for bit, on a probe: a miscompiled or unsupported variant costs speed, never a wrong token.
#include "sampler/kernels.h"

#include "sampler/kernels-common.h"

#if defined(_MSC_VER) && !defined(__clang__) && defined(_M_X64)
#include <intrin.h>
#elif defined(__x86_64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace onpolicy {
namespace {

#if defined(_MSC_VER) && !defined(__clang__) && defined(_M_X64)
bool HasLeaf7Bit(int bit, unsigned long long saved_state) {
  int info[4];
  __cpuid(info, 0);
  if (info[0] < 7) return false;
  __cpuid(info, 1);
  if ((info[2] >> 27 & 1) == 0) return false;  // the system does not save vector registers
  if ((_xgetbv(0) & saved_state) != saved_state) return false;
  __cpuidex(info, 7, 0);
  return (info[1] >> bit & 1) != 0;
}
bool HasAvx2() { return HasLeaf7Bit(5, 0x6); }  // every such processor has FMA
bool HasAvx512() { return HasAvx2() && HasLeaf7Bit(16, 0xE6); }
#elif defined(__x86_64__) && defined(__APPLE__)
// Cross compilers lack the library behind __builtin_cpu_supports.
bool HasFeature(const char* name) {
  int value = 0;
  size_t size = sizeof(value);
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}
bool HasAvx2() {
  return HasFeature("hw.optional.avx2_0") && HasFeature("hw.optional.fma") && HasFeature("hw.optional.bmi1");
}
bool HasAvx512() { return HasAvx2() && HasFeature("hw.optional.avx512f"); }
#elif defined(__x86_64__)
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi");
}
bool HasAvx512() { return HasAvx2() && __builtin_cpu_supports("avx512f"); }
#endif

// Four blocks that reach every branch: a full mask, an empty one, a mixed one, and a block below the floor.
struct Probe {
  static constexpr size_t kBlocks = 4;
  float row[kBlocks * kBlockSize];
  uint32_t mask[kBlocks * 2] = {~0u, ~0u, 0, 0, 0x9249C35Au, 0x1u, ~0u, 0x7FFFFFFFu};

  Probe() {
    uint32_t state = 1;
    for (float& value : row) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) * 0x1p-19f - 16;  // in [-16, 16)
    }
    row[5] = kMinusInfinity;
    row[70] = 16;
    for (size_t i = 3 * kBlockSize; i < 4 * kBlockSize; ++i) row[i] -= 100;
  }
};

struct ProbeResult {
  bool ordered;
  float maxima[Probe::kBlocks], masked[Probe::kBlocks], sums[Probe::kBlocks], masked_sums[Probe::kBlocks];
  float weights[kBlockSize], values[Probe::kBlocks * kBlockSize];
  int32_t ids[Probe::kBlocks * kBlockSize];
  size_t collected, counted;
};

ProbeResult Run(const Kernels& kernels, const Probe& probe) {
  ProbeResult result;
  std::memset(&result, 0, sizeof result);
  const size_t blocks = Probe::kBlocks;
  result.ordered = kernels.block_maxima(probe.row, blocks, result.maxima);
  kernels.masked_maxima(probe.row, probe.mask, blocks, result.maxima, result.masked);
  kernels.block_sums(probe.row, nullptr, blocks, result.maxima, 16, 1.5f, -20, result.sums);
  kernels.block_sums(probe.row, probe.mask, blocks, result.masked, 16, 1.5f, -200, result.masked_sums);
  result.collected =
      kernels.collect(probe.row, probe.mask, blocks, result.masked, 2, 7, result.ids, result.values);
  result.counted = kernels.count_at_least(probe.row, blocks, result.maxima, 3);
  kernels.weights(probe.row, kBlockSize, 16, 0.7f, result.weights);
  return result;
}

bool FindsNan(const Kernels& kernels, Probe probe) {
  float maxima[Probe::kBlocks];
  for (const size_t place : {size_t{0}, size_t{63}, size_t{100}, size_t{150}}) {
    const float before = probe.row[place];
    probe.row[place] = std::numeric_limits<float>::quiet_NaN();
    if (kernels.block_maxima(probe.row, Probe::kBlocks, maxima)) return false;
    probe.row[place] = before;
  }
  return true;
}

std::vector<const Kernels*> FindKernels() {
  std::vector<const Kernels*> found = {&kScalarKernels};
  const Probe probe;
  const ProbeResult expected = Run(kScalarKernels, probe);
  [[maybe_unused]] const auto consider = [&](const Kernels& kernels) {
    const ProbeResult got = Run(kernels, probe);
    if (std::memcmp(&got, &expected, sizeof got) == 0 && FindsNan(kernels, probe)) found.push_back(&kernels);
  };
#if defined(__aarch64__) || defined(_M_ARM64)
  consider(kNeonKernels);
#elif defined(__x86_64__) || defined(_M_X64)
  if (HasAvx2()) consider(kAvx2Kernels);
  if (HasAvx512()) consider(kAvx512Kernels);
#endif
  return found;
}

}  // namespace

const std::vector<const Kernels*>& AvailableKernels() {
  static const std::vector<const Kernels*> available = FindKernels();
  return available;
}

const Kernels& BestKernels() { return *AvailableKernels().back(); }

}  // namespace onpolicy
