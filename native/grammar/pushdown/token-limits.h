// The parses before a token -> those that the token may continue: texts that are limited in tokens give one up, and end once none is left.
#pragma once
#include <cstdint>
#include <vector>

#include "grammar/pushdown/grammar.h"

namespace onpolicy::grammar {

class TokenLimits {
 public:
  // `grammar` must outlive this.
  explicit TokenLimits(Grammar& grammar) : grammar_(grammar) {}
  // Takes one token from each limited text that a parse is in. Drops the parses inside a text without tokens left, if the text may end here:
  // other parses are behind its end. A text that may not end here continues until it may.
  std::vector<Config> Spend(const std::vector<Config>& parses);
  // Returns the parses without their limits. They allow the same within one token, so that masks need not know how many tokens are left.
  std::vector<Config> Lift(const std::vector<Config>& parses);
  // Returns true if a parse is in a limited text.
  bool IsLimited(const Config& parse) const;

 private:
  // Returns the parses with the limits that `change` makes of theirs; without one the parse is dropped.
  template <typename Change>
  std::vector<Config> WithLimits(const std::vector<Config>& parses, const Change& change);

  Grammar& grammar_;
};

}  // namespace onpolicy::grammar
