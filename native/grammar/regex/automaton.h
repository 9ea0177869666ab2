// A hand-written byte automaton (number bounds, divisibility, many keys), used as a leaf of an expression.
#pragma once
#include <cstdint>
#include <string>

#include "grammar/regex/byte-set.h"

namespace onpolicy::grammar {

class Automaton {
 public:
  static constexpr uint32_t kDead = 0xFFFFFFFFu;
  virtual ~Automaton() = default;
  virtual uint32_t Next(uint32_t state, uint8_t byte) = 0;
  virtual bool Accepts(uint32_t state) = 0;
  // An automaton with tags identifies the text that ends in a state. Each of its states has a way to an end, and First returns the bytes of
  // these ways.
  virtual bool IsTagged() const { return false; }
  virtual uint32_t TagOf(uint32_t) const { return 0; }
  virtual ByteSet First(uint32_t) { return ByteSet::All(); }
  // Automata with equal content have the same states. An automaton without content equals no other.
  virtual std::string Content() const { return {}; }
};

}  // namespace onpolicy::grammar
