// A hand-written byte automaton (number bounds, divisibility) that is a leaf of an expression.
#pragma once
#include <cstdint>
#include <string>

namespace onpolicy::grammar {

class Automaton {
 public:
  static constexpr uint32_t kDead = 0xFFFFFFFFu;
  virtual ~Automaton() = default;
  virtual uint32_t Next(uint32_t state, uint8_t byte) = 0;
  virtual bool Accepts(uint32_t state) = 0;
  // Automata of equal content have the same states; one without content equals no other.
  virtual std::string Content() const { return {}; }
};

}  // namespace onpolicy::grammar
