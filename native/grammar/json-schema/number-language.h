// Number constraints -> expressions over the digits of a JSON number: order against a bound, divisibility.
// Automata with a few states per digit of the bound. With an exponent, a compared value has one digit before the point.
#pragma once
#include "grammar/json/value.h"
#include "grammar/regex/pool.h"

namespace onpolicy::grammar {

constexpr unsigned kLess = 1, kEqual = 2, kGreater = 4;

class NumberLanguage {
 public:
  explicit NumberLanguage(RegexPool& pool);
  NodeId Any() const { return any_; }          // every JSON number
  NodeId Integer() const { return integer_; }  // without fraction and exponent
  NodeId NotInteger() const { return not_integer_; }
  NodeId Plain() const { return plain_; }      // without exponent
  // Returns the numbers whose order against `bound` is one of `relations`.
  NodeId Ordered(const Decimal& bound, unsigned relations);
  // Sets `result` to the multiples of a positive `step` (or to the others). Returns false, with kNothing, if the step is too fine or too
  // large.
  bool Multiple(const Decimal& step, bool inverted, NodeId* result);
  // Returns the usual spellings of one number.
  NodeId Exactly(const Decimal& value);

 private:
  RegexPool& pool_;
  NodeId any_, integer_, not_integer_, plain_;
};

}  // namespace onpolicy::grammar
