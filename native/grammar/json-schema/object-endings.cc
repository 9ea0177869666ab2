// A state of an object -> whether the object may end in it, and whether it can end at all: open keys, met demands, excluded objects.
#include "grammar/json-schema/object-rules.h"

#include <algorithm>
#include <bit>

#include "base/limits.h"

namespace onpolicy::grammar {

static constexpr uint64_t kImpossible = UINT64_MAX;

bool ObjectRules::IsOpen(const ObjectState& state, size_t index) const {
  const KnownKey& key = specs_[state.spec].known[index];
  if (key.formula == kFalseFormula) return false;
  return key.group < 0 ? !specs_[state.spec].loose_sets->Has(state.seen, key.seen) : key.rank >= state.next_rank[static_cast<size_t>(key.group)];
}

ObjectState ObjectRules::Taken(const ObjectState& state, size_t index) const {
  const ObjectSpec& spec = specs_[state.spec];
  const KnownKey& key = spec.known[index];
  ObjectState next = state;
  next.first = false;
  if (spec.count_matters) next.count++;
  if (key.group >= 0) {
    next.next_rank[static_cast<size_t>(key.group)] = key.rank + 1;
  } else {
    next.seen = spec.loose_sets->With(state.seen, key.seen);
  }
  return next;
}

ObjectSpec::RankCount ObjectRules::CountOpen(const ObjectState& state) const {
  const ObjectSpec& spec = specs_[state.spec];
  ObjectSpec::RankCount count;
  for (size_t group = 0; group < spec.from_rank.size(); group++) {
    const auto& ranks = spec.from_rank[group];
    if (state.next_rank[group] >= ranks.size()) continue;
    count.open += ranks[state.next_rank[group]].open;
    count.owed += ranks[state.next_rank[group]].owed;
  }
  const uint32_t loose = static_cast<uint32_t>(spec.loose_count.open), required = static_cast<uint32_t>(spec.loose_count.owed);
  count.open += loose - spec.loose_sets->Count(state.seen, 0, loose);
  count.owed += required - spec.loose_sets->Count(state.seen, 0, required);
  return count;
}

// Returns true if all demands are met.
bool ObjectRules::CanClose(const ObjectState& state) const {
  const ObjectSpec& spec = specs_[state.spec];
  if ((state.count < spec.min && spec.count_matters) || context_.seen.HasEmpty(state.excluded)) return false;
  return !spec.lacks_required && CountOpen(state).owed == 0 && state.met == spec.AllDemands();
}

// Returns true if all demands can still be met. States for which this is false are never entered.
bool ObjectRules::CanFinish(const ObjectState& state) {
  const ObjectSpec& spec = specs_[state.spec];
  // A required key that is no longer open was written, because required keys are never skipped.
  if (spec.lacks_required) return false;
  if (!spec.count_matters && state.met == spec.AllDemands()) return true;
  return CanFinish(state, CountOpen(state));
}

bool ObjectRules::CanFinish(const ObjectState& state, ObjectSpec::RankCount count) {
  const ObjectSpec& spec = specs_[state.spec];
  auto [open, owed] = count;
  for (const FurtherKeys& further : spec.further) open += further.count;
  if (state.met != spec.AllDemands()) owed = LeastMembers(state);
  if (owed == kImpossible) return false;
  if (!spec.count_matters) return true;
  const uint64_t used = context_.seen.Size(state.further);
  return state.count + owed <= spec.max && state.count + open >= spec.min + (open >= kCountedKeys ? 0 : used);
}

// Returns the least number of further members with which all required keys are present and all demands are met, or kImpossible.
uint64_t ObjectRules::LeastMembers(const ObjectState& state) {
  const ObjectSpec& spec = specs_[state.spec];
  struct Place {
    FormulaId formula;
    Meeting meeting;
    bool required;
    uint64_t count;
  };
  std::vector<Place> places;
  for (size_t i = 0; i < spec.known.size(); i++)
    if (IsOpen(state, i)) places.push_back({spec.known[i].formula, spec.known[i].meeting, spec.known[i].required, 1});
  for (const FurtherKeys& further : spec.further) places.push_back({further.formula, further.meeting, false, further.count});
  uint64_t unmet = spec.AllDemands() & ~state.met, possible = 0;
  for (const Place& place : places) {
    // Without a limit, members that meet a demand with any value cost nothing.
    if (spec.max == UINT64_MAX) unmet &= ~place.meeting.always;
    possible |= place.meeting.always | place.meeting.maybe;
  }
  const uint64_t required = static_cast<uint64_t>(std::count_if(places.begin(), places.end(), [](const Place& place) { return place.required; }));
  if (unmet & ~possible) return kImpossible;
  const int open = std::popcount(unmet);
  if (open == 0 || (open == 1 && spec.max == UINT64_MAX)) return required;
  if (open > limits::kOpenDemands) return required + static_cast<uint64_t>(open);
  // By set of demands: the least number of members that meet them.
  std::vector<uint64_t> least(size_t{1} << open, kImpossible);
  least[0] = 0;
  const auto dense = [&](uint64_t demands) {
    size_t set = 0, at = 0;
    for (uint64_t rest = unmet; rest != 0; rest &= rest - 1, at++)
      if (demands >> std::countr_zero(rest) & 1) set |= size_t{1} << at;
    return set;
  };
  for (const Place& place : places) {
    std::vector<size_t> sets;
    const uint64_t maybe = place.meeting.maybe & unmet;
    for (uint64_t set = maybe;; set = (set - 1) & maybe) {
      if (set == 0 || !context_.shapes.IsEmpty(specs_.WithDemands(spec, place.formula, set))) sets.push_back(dense(set | place.meeting.always));
      if (set == 0) break;
    }
    for (uint64_t use = 0; use < std::min<uint64_t>(place.count, static_cast<uint64_t>(open)); use++) {
      std::vector<uint64_t> next = place.required ? std::vector<uint64_t>(least.size(), kImpossible) : least;
      for (size_t met = 0; met < least.size(); met++)
        if (least[met] != kImpossible)
          for (size_t set : sets) next[met | set] = std::min(next[met | set], least[met] + 1);
      least = std::move(next);
    }
  }
  return least.back();
}

// Returns true if the object can still become different from all excluded objects.
bool ObjectRules::CanDiffer(const ObjectState& state) {
  if (state.excluded == 0 || CanClose(state)) return true;
  const uint64_t excluded = context_.seen.Size(state.excluded);
  const ObjectSpec& spec = specs_[state.spec];
  for (size_t i = 0; i < spec.known.size(); i++)
    if (IsOpen(state, i) && CanFinish(Taken(state, i)) &&
        context_.shapes.count().CountSure(spec.known[i].formula) > excluded)
      return true;
  return !context_.grammar.IsEmptyRule(Object(state));
}

}  // namespace onpolicy::grammar
