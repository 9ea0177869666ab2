// A packed row -> its runs of tokens that continue one sequence each, and where the tokens of the sequence are in the row.
#pragma once
#include "trainer/row.h"

namespace onpolicy::training {

// Tokens side by side of one group.
struct TokenRun {
  int64_t start, count;
  // The token at each place of the sequence: what the run sees before it, then its own tokens. Padded to whole blocks of attention.
  std::vector<int32_t> places;
  int64_t seen;  // places before those of the run
};

// `window`: of the layers that have one; 0: none has. Empty where places of a sequence cannot stand for its positions, which a window counts.
std::vector<TokenRun> TokenRunsOf(const PackedRow& row, int64_t window);

}  // namespace onpolicy::training
