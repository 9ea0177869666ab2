// A step run ahead: it takes the tokens just sampled and the drafts after them, starts while JavaScript reads them, and is used if
// JavaScript then asks for it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/step-input.h"

namespace onpolicy {

class NextStep {
 public:
  // Plans the step after `input`: for each sequence that is not final, the sampled token and as many drafts as the sequence may check. Its
  // edits cut the drafts of `input` that were not sampled. Plans nothing if a row has no token or forced tokens after it, or a sequence is
  // sampled twice.
  void LayOut(const StepInput& input, const std::vector<RowResult>& samples) {
    Clear();
    input_.adapter = input.adapter;
    input_.records_experts = input.records_experts;
    for (size_t first = 0; first < samples.size(); first = input.EndOfSequence(first)) {
      const size_t end = input.EndOfSequence(first);
      size_t last = first;  // the last row that was sampled
      for (size_t row = first; row < end; ++row)
        if (samples[row].status != RowStatus::kPassedOver) last = row;
      const RowResult& sample = samples[last];
      const auto row = static_cast<size_t>(input.sample_rows[last]);
      const int32_t sequence = input.sequences[row];
      int32_t position = input.positions[row] + 1;
      if (sample.is_final) continue;
      if (sample.token < 0 || !sample.forced.empty() || Has(input_.sequences, sequence)) return Clear();
      if (last + 1 < end) input_.memory_edits.insert(input_.memory_edits.end(), {kMemoryRemove, sequence, 0, position, -1});
      const auto add = [&](int32_t token) {
        input_.sample_rows.push_back(static_cast<int32_t>(input_.tokens.size()));
        input_.tokens.push_back(token);
        input_.positions.push_back(position++);
        input_.sequences.push_back(sequence);
      };
      add(sample.token);
      for (size_t i = 0; i < std::min(sample.drafts.size(), sample.drafts_to_check); ++i)
        add(sample.drafts[i]);
    }
  }

  void Clear() {
    input_.tokens.clear();
    input_.positions.clear();
    input_.sequences.clear();
    input_.sample_rows.clear();
    input_.memory_edits.clear();
  }

  bool empty() const { return input_.tokens.empty(); }
  const StepInput& input() const { return input_; }

  // Returns true if `step` is this one, except for ended sequences and omitted drafts.
  bool Covers(const StepInput& step) const { return !PlacesOf(step).empty(); }
  // Returns true if `step` has all of its tokens and no others, and leaves its sequences unchanged.
  bool IsAll(const StepInput& step) const {
    return !empty() && step.tokens.size() == input_.tokens.size() && Covers(step);
  }

  // Returns true if it has one token for each of `sequences` sequences.
  bool IsOneTokenEach(size_t sequences) const {
    const std::vector<int32_t>& own = input_.sequences;
    return own.size() == sequences && std::adjacent_find(own.begin(), own.end()) == own.end();
  }

  // Returns the place of each token of `step` in this one. Empty if `step` is another step.
  std::vector<int32_t> PlacesOf(const StepInput& step) const {
    if (step.adapter != input_.adapter || !step.score_rows.empty() || !HasEdits(step)) return {};
    if (step.records_experts && !input_.records_experts) return {};
    std::vector<int32_t> places;
    size_t at = 0;
    for (size_t i = 0; i < step.tokens.size(); ++i, ++at) {
      while (at < input_.sequences.size() && input_.sequences[at] != step.sequences[i]) ++at;
      if (at == input_.sequences.size() || input_.tokens[at] != step.tokens[i] || input_.positions[at] != step.positions[i])
        return {};
      places.push_back(static_cast<int32_t>(at));
    }
    return places;
  }

 private:
  static bool Has(const std::vector<int32_t>& numbers, int32_t wanted) {
    return std::find(numbers.begin(), numbers.end(), wanted) != numbers.end();
  }

  // Returns true if the edits of `step` are edits of this one, or only free the cache of other sequences; those may be made after it.
  bool HasEdits(const StepInput& step) const {
    const std::vector<int32_t>& edits = step.memory_edits;
    const std::vector<int32_t>& own = input_.memory_edits;
    for (size_t i = 0; i + 5 <= edits.size(); i += 5) {
      if (edits[i] == kMemoryForget) continue;
      if (edits[i] != kMemoryRemove) return false;
      if (!Has(step.sequences, edits[i + 1])) continue;
      bool is_own = false;
      for (size_t at = 0; at < own.size(); at += 5) is_own |= std::equal(&own[at], &own[at] + 5, &edits[i]);
      if (!is_own) return false;
    }
    return true;
  }

  StepInput input_;
};

}  // namespace onpolicy
