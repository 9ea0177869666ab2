// Rows of logits that were computed ahead but not used by the next step -> rows for the step that asks for their tokens.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/step-input.h"

namespace onpolicy {

// Place of a token that is not computed yet.
constexpr int32_t kNoPlace = std::numeric_limits<int32_t>::max();

// Results of a token that is not in the engine's last batch.
struct OutsideRow {
  std::vector<float> logits;
  std::vector<float> state;        // read by a draft head; empty if there is none
  std::vector<uint16_t> experts;   // as in RoutedExperts; empty: unknown
};

struct KeptRow {
  int32_t sequence, position, token;
  OutsideRow row;
};

class KeptRows {
 public:
  void Add(KeptRow row) { rows_.push_back(std::move(row)); }

  // Moves the rows of this step's tokens to the end of `taken`. Sets `places` (tokens) to -1 - their index in it, and leaves the others
  // unchanged.
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
    // Drops rows before these tokens: their sequence has ended, so that no step asks for them.
    for (size_t i = 0; i < input.tokens.size() && !rows_.empty(); ++i)
      std::erase_if(rows_, [&](const KeptRow& kept) {
        return kept.sequence == input.sequences[i] && kept.position < input.positions[i];
      });
  }

  // Drops the rows of a sequence from a position on.
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
