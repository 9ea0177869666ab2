// (seed, position) -> a number in [0, 1): Philox4x32-10. Stateless, so batching, preemption and retries
// cannot change the number of a position.
#pragma once
#include <cstdint>

namespace onpolicy {

// 53 random bits scaled to [0, 1). `position` counts the tokens that the sequence has generated. Streams of one seed are
// independent.
inline double UniformAt(uint64_t seed, uint64_t position, uint32_t stream = 0) {
  uint32_t counter[4] = {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), stream, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57u} * counter[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    for (int i = 0; i < 4; ++i) counter[i] = next[i];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  const uint64_t bits = (uint64_t{counter[0]} << 21) ^ (counter[1] >> 11);
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace onpolicy
