// Rows of logits that were computed ahead, and not asked for by the step after -> the step that asks for their tokens.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "llama/step-input.h"

namespace onpolicy {

// The place of a token that is not computed yet.
constexpr int32_t kNoPlace = std::numeric_limits<int32_t>::max();

// What is known of a token that is not in the engine's last batch.
struct OutsideRow {
  std::vector<float> logits;
  std::vector<float> state;        // that a draft head reads; empty: there is none
  std::vector<uint16_t> experts;   // as RoutedExperts has them; empty: they are not known
};

struct KeptRow {
  int32_t sequence, position, token;
  OutsideRow row;
};

class KeptRows {
 public:
  void Add(KeptRow row) { rows_.push_back(std::move(row)); }

  // Moves the rows of tokens of this step behind `taken`. `places` (tokens): -1 - their index there. The others get kNoPlace.
  void Take(const StepInput& input, std::vector<int32_t>* places, std::vector<OutsideRow>* taken) {
    for (size_t i = 0; i < input.tokens.size() && !rows_.empty(); ++i) {
      const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const KeptRow& kept) {
        return kept.sequence == input.sequences[i] && kept.position == input.positions[i];
      });
      if (row == rows_.end()) continue;
      if (row->token != input.tokens[i])
        throw Failure("BACKEND_FAILED", "another token was computed ahead than a step asks for");
      taken->push_back(std::move(row->row));
      (*places)[i] = -static_cast<int32_t>(taken->size());
      rows_.erase(row);
    }
    // Nobody asks any more for rows in front of these tokens: their sequence had ended.
    for (size_t i = 0; i < input.tokens.size() && !rows_.empty(); ++i)
      std::erase_if(rows_, [&](const KeptRow& kept) {
        return kept.sequence == input.sequences[i] && kept.position < input.positions[i];
      });
  }

  // Those of a sequence from a position on.
  void Drop(int32_t sequence, int32_t from) {
    std::erase_if(rows_, [&](const KeptRow& row) { return row.sequence == sequence && row.position >= from; });
  }

  void ForgetStates() {
    for (KeptRow& row : rows_) row.row.state.clear();
  }

 private:
  std::vector<KeptRow> rows_;
};

}  // namespace onpolicy
