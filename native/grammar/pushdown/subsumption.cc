// Branch-by-branch comparison of stacks, with a cache and a limit.
#include "grammar/pushdown/subsumption.h"

#include <algorithm>

namespace onpolicy::grammar {

// Work counted for one step of a comparison.
static constexpr uint64_t kStepWork = 12;

const std::vector<StackId>& Subsumption::NextBelow(StackId stack) {
  if (next_below_.size() <= stack) next_below_.resize(stacks_.size());
  if (next_below_[stack]) return *next_below_[stack];
  std::vector<StackId> found;
  for (const Branch& branch : stacks_[stack])
    if (branch.tag == 0 && branch.parent != stack && symbols_.IsKnownNullable(branch.sequence)) found.push_back(branch.parent);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  symbols_.regex().budget().Spend(4 + 2 * stacks_[stack].size());
  next_below_[stack] = std::make_unique<std::vector<StackId>>(std::move(found));
  return *next_below_[stack];
}

const std::vector<StackId>& Subsumption::Below(StackId stack) {
  if (below_.size() <= stack) below_.resize(stacks_.size());
  if (below_[stack]) return *below_[stack];
  found_from_.resize(stacks_.size(), 0);
  std::vector<StackId> found{stack};
  found_from_[stack] = stack + 1;
  size_t steps = 0;
  for (size_t at = 0; at < found.size() && found.size() < limits::kStacksBelow && steps < limits::kBelowSteps; at++)
    for (StackId next : NextBelow(found[at])) {
      steps++;
      if (found_from_[next] != stack + 1) found.push_back(next);
      found_from_[next] = stack + 1;
    }
  symbols_.regex().budget().Spend(4 + 2 * steps);
  found.erase(found.begin());
  below_[stack] = std::make_unique<std::vector<StackId>>(std::move(found));
  return *below_[stack];
}

bool Subsumption::Subsumes(StackId whole, StackId part) {
  if (answers_.size() > limits::kSubsumptionAnswers) {
    std::swap(earlier_answers_, answers_);
    answers_.Clear();
  }
  asked_.clear();
  const uint32_t given = std::max(steps_.left(), limits::kLeastSubsumptionSteps);
  Allowance steps(given);
  const bool result = Ask(whole, part, &steps).holds;
  // A comparison that took too long is not repeated.
  if (steps.IsSpent() && !result) answers_.Set(PairKey(whole, part), kNo);
  const uint32_t taken = given - steps.left();
  symbols_.regex().budget().Spend(6 + kStepWork * taken);
  steps_.Spend(taken);
  return result;
}

uint32_t Subsumption::KnownAnswer(uint64_t key) {
  uint32_t known = answers_.Find(key);
  if (known == HashIndex::kNone) {
    known = earlier_answers_.Find(key);
    if (known == kYes || known == kNo) answers_.Set(key, known);
  }
  return known;
}

Subsumption::Answer Subsumption::AskAny(const Branch* first, const Branch* last, StackId part, Allowance* steps) {
  // Tries cached answers first, because a new comparison may go down to the bottom of both stacks.
  for (const Branch* branch = first; branch != last; branch++)
    if (branch->parent == part || KnownAnswer(PairKey(branch->parent, part)) == kYes) return {true};
  // Tries the latest stacks first, which subsume the most.
  for (const Branch* branch = last; branch != first && !steps->IsSpent();)
    if (const Answer answer = Ask((--branch)->parent, part, steps); answer.holds) return answer;
  return {false};
}

bool Subsumption::AskMemo(StackId whole, StackId part, uint64_t key, Answer* answer) {
  const uint32_t known = KnownAnswer(key);
  *answer = {known == kYes};
  if (known == kYes || known == kNo) return true;
  if (const uint32_t at = known - kAsked; known != HashIndex::kNone && known >= kAsked && at < asked_.size())
    if (asked_[at].key == key) {
      *answer = {true, asked_[at].base};
      return true;
    }
  const std::vector<StackId>& below = Below(whole);
  if (std::find(below.begin(), below.end(), part) == below.end()) return false;
  answers_.Set(key, kYes);
  *answer = {true};
  return true;
}

// Coinductive: a pair that is being compared counts as subsumed meanwhile, so that cyclic stacks can be compared. An answer that depends on
// no such pair is final; one that depends on a pair that failed is open again.
Subsumption::Answer Subsumption::Ask(StackId whole, StackId part, Allowance* steps) {
  if (whole == part) return {true};
  steps->Spend();
  const uint64_t key = PairKey(whole, part);
  if (Answer known; AskMemo(whole, part, key, &known)) return known;
  const uint32_t place = static_cast<uint32_t>(asked_.size());
  if (steps->IsSpent() || place == limits::kSubsumptionDepth) return {false};
  const std::vector<Branch>&parts = stacks_[part], &wholes = stacks_[whole];
  steps->Spend(static_cast<uint32_t>(2 + (parts.size() + wholes.size()) / 16));
  Answer result{!parts.empty()};
  asked_.push_back({key, place});
  answers_.Set(key, kAsked + place);
  // The branches of both are sorted.
  for (size_t i = 0, k = 0; result.holds && i < parts.size(); i++) {
    const Branch& branch = parts[i];
    const auto is_before = [](const Branch& a, const Branch& b) {
      return a.tag != b.tag ? a.tag < b.tag : a.sequence < b.sequence;
    };
    for (; k < wholes.size() && is_before(wholes[k], branch); k++) {
    }
    size_t end = k;
    while (end < wholes.size() && !is_before(branch, wholes[end])) end++;
    const Answer answer = AskAny(wholes.data() + k, wholes.data() + end, branch.parent, steps);
    result = {answer.holds, std::min(result.base, answer.base)};
  }
  if (result.holds && result.base < place) {
    asked_[place].base = result.base;
    return result;
  }
  for (size_t i = place; i < asked_.size(); i++) answers_.Set(asked_[i].key, result.holds ? kYes : kOpen);
  asked_.resize(place);
  if (!result.holds && !steps->IsSpent()) answers_.Set(key, kNo);
  return {result.holds};
}

void Subsumption::Reduce(std::vector<Branch>* branches) {
  symbols_.regex().budget().Spend(40 + 20 * branches->size());
  std::sort(branches->begin(), branches->end());
  branches->erase(std::unique(branches->begin(), branches->end()), branches->end());
  // Drops branches whose stack is subsumed by that of another branch with the same sequence. Begins with the latest stacks, which subsume
  // the most.
  const auto is_same = [](const Branch& a, const Branch& b) { return a.tag == b.tag && a.sequence == b.sequence; };
  covered_.resize(stacks_.size(), 0);
  Branch last{kUnlimited, 0, 0};
  size_t kept = branches->size();
  Allowance misses(limits::kTidyMisses);
  for (size_t at = branches->size(); at-- > 0;) {
    const Branch branch = (*branches)[at];
    const bool has_later = is_same(branch, last), has_earlier = at > 0 && is_same(branch, (*branches)[at - 1]);
    last = branch;
    if (!has_later) group_++;
    bool is_subsumed = covered_[branch.parent] == group_;
    const size_t most = std::min(branches->size(), kept + limits::kTidyBranches);
    for (size_t other = kept; !is_subsumed && !misses.IsSpent() && other < most && is_same(branch, (*branches)[other]); other++) {
      is_subsumed = Subsumes((*branches)[other].parent, branch.parent);
      misses.Spend(!is_subsumed);
    }
    if (has_later || has_earlier)
      for (StackId below : Below(branch.parent)) covered_[below] = group_;
    if (!is_subsumed) (*branches)[--kept] = branch;
  }
  branches->erase(branches->begin(), branches->begin() + static_cast<std::ptrdiff_t>(kept));
}

}  // namespace onpolicy::grammar
