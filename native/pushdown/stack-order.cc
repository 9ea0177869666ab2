// Which stacks go on with all that others do, and lists of branches without those that add nothing. Without this, the
// stacks of an ambiguous grammar have a branch for every place where a reading may have begun.
#include <algorithm>

#include "pushdown/grammar.h"

namespace onpolicy::grammar {

// So many stacks are looked for below one, at so many branches.
static constexpr size_t kMaxBelow = 100;
static constexpr size_t kMaxBelowSteps = 2000;
// The questions of one closure, whether one stack holds another, take so many steps; each one beyond them takes a few.
static constexpr uint32_t kClosureSteps = 12000;
static constexpr uint32_t kFewSteps = 80;
static constexpr uint64_t kStepWork = 12;
// Answers of one table: when they are more, a new one begins, and the one before it is still asked.
static constexpr size_t kMaxAnswers = 1u << 20;
// So many branches are asked whether their stack holds that of one more.
static constexpr size_t kMostAsked = 100;
// So often may one stack not hold another until no more is asked of a list of branches.
static constexpr size_t kMaxQuestions = 1000;
// Answers about two stacks; from kAsked on, where the pair stands among those that are being asked about.
static constexpr uint32_t kHoldsNot = 0, kHolds = 1, kOpen = 2, kAsked = 3;
// Pairs that rest on each other are followed this deep.
static constexpr uint32_t kDeepest = 4000;

const std::vector<StackId>& Grammar::Below(StackId stack) {
  if (below_[stack]) return *below_[stack];
  std::vector<StackId> found{stack};
  size_t steps = 0;
  for (size_t at = 0; at < found.size() && found.size() < kMaxBelow; at++)
    for (const Branch& branch : stacks_[found[at]]) {
      if (++steps > kMaxBelowSteps) break;
      if (branch.tag == 0 && IsKnownNullable(branch.sequence) &&
          std::find(found.begin(), found.end(), branch.parent) == found.end())
        found.push_back(branch.parent);
    }
  regex_.Charge(4 + 2 * steps);
  found.erase(found.begin());
  below_[stack] = std::make_unique<std::vector<StackId>>(std::move(found));
  return *below_[stack];
}

void Grammar::RefillQuestions() { holds_steps_ = kClosureSteps; }

bool Grammar::Holds(StackId whole, StackId part) {
  if (holds_.size() > kMaxAnswers) {
    std::swap(earlier_holds_, holds_);
    holds_.Clear();
  }
  asked_.clear();
  const uint32_t given = std::max(holds_steps_, kFewSteps);
  uint32_t steps = given;
  const bool result = Ask(whole, part, &steps).holds;
  // What took too long would take too long again.
  if (steps == 0 && !result) holds_.Set(PairKey(whole, part), kHoldsNot);
  regex_.Charge(6 + kStepWork * (given - steps));
  holds_steps_ -= std::min(holds_steps_, given - steps);
  return result;
}

uint32_t Grammar::KnownAnswer(uint64_t key) {
  uint32_t known = holds_.Find(key);
  if (known == PagedIndex::kNone) {
    known = earlier_holds_.Find(key);
    if (known == kHolds || known == kHoldsNot) holds_.Set(key, known);
  }
  return known;
}

Grammar::Answer Grammar::AskAny(const Branch* first, const Branch* last, StackId part, uint32_t* steps) {
  // What is known is tried first: new questions may go down to the bottom of both stacks.
  for (const Branch* branch = first; branch != last; branch++)
    if (branch->parent == part || KnownAnswer(PairKey(branch->parent, part)) == kHolds) return kYes;
  // The latest stacks hold the most.
  for (const Branch* branch = last; branch != first && *steps > 0;)
    if (const Answer answer = Ask((--branch)->parent, part, steps); answer.holds) return answer;
  return kNo;
}

// A pair that is being asked about counts as held meanwhile: stacks that point at each other hold others like them when
// every single step of theirs does. What rests on no such pair is proven; what rests on one that failed is open again.
Grammar::Answer Grammar::Ask(StackId whole, StackId part, uint32_t* steps) {
  if (whole == part) return kYes;
  *steps -= *steps > 0;
  const uint64_t key = PairKey(whole, part);
  const uint32_t known = KnownAnswer(key);
  if (known == kHolds) return kYes;
  if (known == kHoldsNot) return kNo;
  if (const uint32_t at = known - kAsked; known != PagedIndex::kNone && known >= kAsked && at < asked_.size())
    if (asked_[at].key == key) return {true, asked_[at].base};
  const std::vector<StackId>& below = Below(whole);
  if (std::find(below.begin(), below.end(), part) != below.end()) {
    holds_.Set(key, kHolds);
    return kYes;
  }
  const uint32_t place = static_cast<uint32_t>(asked_.size());
  if (*steps == 0 || place == kDeepest) return kNo;
  const std::vector<Branch>&parts = stacks_[part], &wholes = stacks_[whole];
  *steps -= std::min(*steps, static_cast<uint32_t>(2 + (parts.size() + wholes.size()) / 16));
  Answer result{!parts.empty(), kUnlimited};
  asked_.push_back({key, place});
  holds_.Set(key, kAsked + place);
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
  for (size_t i = place; i < asked_.size(); i++) holds_.Set(asked_[i].key, result.holds ? kHolds : kOpen);
  asked_.resize(place);
  if (!result.holds && *steps > 0) holds_.Set(key, kHoldsNot);
  return {result.holds, kUnlimited};
}

void Grammar::Tidy(std::vector<Branch>* branches) {
  regex_.Charge(40 + 20 * branches->size());
  std::sort(branches->begin(), branches->end());
  branches->erase(std::unique(branches->begin(), branches->end()), branches->end());
  // Of branches that go on alike, one drops out whose stack another's holds. The latest stacks hold the most.
  const auto is_alike = [](const Branch& a, const Branch& b) { return a.tag == b.tag && a.sequence == b.sequence; };
  covered_.resize(stacks_.size(), 0);
  Branch last{kUnlimited, 0, 0};
  size_t kept = branches->size(), questions = kMaxQuestions;
  for (size_t at = branches->size(); at-- > 0;) {
    const Branch branch = (*branches)[at];
    const bool has_later = is_alike(branch, last), has_earlier = at > 0 && is_alike(branch, (*branches)[at - 1]);
    last = branch;
    if (!has_later) cover_++;
    bool is_held = covered_[branch.parent] == cover_;
    const size_t most = std::min(branches->size(), kept + kMostAsked);
    for (size_t other = kept; !is_held && questions > 0 && other < most && is_alike(branch, (*branches)[other]); other++) {
      is_held = Holds((*branches)[other].parent, branch.parent);
      questions -= !is_held;
    }
    if (has_later || has_earlier)
      for (StackId below : Below(branch.parent)) covered_[below] = cover_;
    if (!is_held) (*branches)[--kept] = branch;
  }
  branches->erase(branches->begin(), branches->begin() + static_cast<std::ptrdiff_t>(kept));
}

}  // namespace onpolicy::grammar
