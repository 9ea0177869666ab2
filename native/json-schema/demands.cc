// What an object owes beyond its required keys: members that meet demands. One member may meet several of them.
#include <algorithm>
#include <bit>

#include "base/spec-error.h"
#include "json-schema/rules.h"

namespace onpolicy::grammar {

// A member may be about so many demands that only some of its values meet: each set of them is a reading of its own.
static constexpr int kMaxMaybe = 6;
// Beyond so many open demands, only whether each can be met is looked at, not whether all can together.
static constexpr int kMaxTogether = 10;

// Which demands a member of a formula meets, of those that are about its key.
SchemaRules::Meeting SchemaRules::MeetingOf(const ObjectSpec& spec, FormulaId formula, uint64_t of_key) {
  Meeting meeting;
  for (size_t i = 0; i < spec.demands.size(); i++) {
    const uint64_t bit = uint64_t{1} << i;
    if (!(of_key & bit) || formula == kFalseFormula) continue;
    const FormulaId narrowed = WithDemands(spec, formula, bit);
    if (narrowed == formula) {
      meeting.always |= bit;
    } else if (!shapes_.IsEmpty(narrowed)) {
      meeting.maybe |= bit;
    }
  }
  if (std::popcount(meeting.maybe) > kMaxMaybe)
    throw SpecError("UNSUPPORTED", "#", "the ways in which a member must differ are too many to enforce");
  return meeting;
}

FormulaId SchemaRules::WithDemands(const ObjectSpec& spec, FormulaId formula, uint64_t demands) {
  std::vector<FormulaId> parts{formula};
  for (uint64_t rest = demands; rest != 0; rest &= rest - 1) parts.push_back(spec.demands[static_cast<size_t>(std::countr_zero(rest))]);
  return compiler_.formulas().And(std::move(parts));
}

// The fewest further members with which all required keys are there and all demands are met; kImpossible: none will do.
uint64_t SchemaRules::LeastMembers(const ObjectState& state) {
  const ObjectSpec spec = object_specs_[state.spec];
  struct Place {
    FormulaId formula;
    Meeting meeting;
    bool required;
    uint64_t count;
  };
  std::vector<Place> places;
  for (size_t i = 0; i < spec.known.size(); i++)
    if (IsOpen(state, i)) places.push_back({spec.known[i].formula, spec.known[i].meeting, spec.known[i].required, 1});
  for (const ExtraKeys& extra : spec.extras) places.push_back({extra.formula, extra.meeting, false, extra.count});
  uint64_t unmet = AllDemands(spec) & ~state.met, possible = 0;
  for (const Place& place : places) {
    // Without a limit, members that meet a demand with any value cost nothing.
    if (spec.max == UINT64_MAX) unmet &= ~place.meeting.always;
    possible |= place.meeting.always | place.meeting.maybe;
  }
  const uint64_t required = static_cast<uint64_t>(std::count_if(places.begin(), places.end(), [](const Place& place) { return place.required; }));
  if (unmet & ~possible) return kImpossible;
  const int open = std::popcount(unmet);
  if (open == 0 || (open == 1 && spec.max == UINT64_MAX)) return required;
  if (open > kMaxTogether) return required + static_cast<uint64_t>(open);
  // By set of demands: the fewest members that meet them.
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
      if (set == 0 || !shapes_.IsEmpty(WithDemands(spec, place.formula, set))) sets.push_back(dense(set | place.meeting.always));
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

}  // namespace onpolicy::grammar
