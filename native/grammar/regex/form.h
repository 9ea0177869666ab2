// The structure of an expression -> a number that is the same in every pool of the process.
#pragma once
#include <cstdint>
#include <random>
#include <string_view>

#include "base/hash-index.h"

namespace onpolicy::grammar {

// 128 bits of a hash whose seed each process draws at random, so that no input can be made to collide.
struct Form {
  uint64_t high = 0, low = 0;
  bool operator==(const Form&) const = default;

  Form With(uint64_t value) const {
    return {MixBits(high ^ MixBits(value + 0x9E3779B97F4A7C15ull)), MixBits((low + value) * 0xD6E8FEB86659FD93ull)};
  }
  Form With(const Form& other) const { return With(other.high).With(other.low); }
  Form With(std::string_view text) const {
    Form form = With(text.size());
    for (char c : text) form = form.With(static_cast<uint8_t>(c));
    return form;
  }
  // Adds a form independently of order.
  void Add(const Form& other) {
    high += other.high;
    low += other.low;
  }
  static Form Seed() {
    static const Form seed = [] {
      std::random_device random;
      const auto draw = [&] { return (static_cast<uint64_t>(random()) << 32) | random(); };
      return Form{draw(), draw()};
    }();
    return seed;
  }
};

}  // namespace onpolicy::grammar
