#include "llama/next-step.h"

#include <algorithm>

namespace onpolicy {

static bool Has(const std::vector<int32_t>& numbers, int32_t wanted) {
  return std::find(numbers.begin(), numbers.end(), wanted) != numbers.end();
}

void NextStep::Clear() {
  input_.tokens.clear();
  input_.positions.clear();
  input_.sequences.clear();
  input_.sample_rows.clear();
}

void NextStep::LayOut(const StepInput& input, const std::vector<RowResult>& samples) {
  Clear();
  input_.adapter = input.adapter;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto row = static_cast<size_t>(input.sample_rows[i]);
    const int32_t sequence = input.sequences[row];
    if (samples[i].is_final) continue;
    if (samples[i].token < 0 || !samples[i].forced.empty() || Has(input_.sequences, sequence)) return Clear();
    input_.sample_rows.push_back(static_cast<int32_t>(input_.tokens.size()));
    input_.tokens.push_back(samples[i].token);
    input_.positions.push_back(input.positions[row] + 1);
    input_.sequences.push_back(sequence);
  }
}

// Whether the edits only free the cache of sequences outside the step: then they may run after it.
static bool FreesOthers(const StepInput& step) {
  const std::vector<int32_t>& edits = step.memory_edits;
  for (size_t i = 0; i + 5 <= edits.size(); i += 5)
    if (edits[i] != kMemoryRemove || Has(step.sequences, edits[i + 1])) return false;
  return true;
}

std::vector<int32_t> NextStep::PlacesOf(const StepInput& step) const {
  if (step.adapter != input_.adapter || !step.score_rows.empty() || !FreesOthers(step)) return {};
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

}  // namespace onpolicy
