// The fewest members with which an object has what it owes. One member may meet several demands.
#include <algorithm>
#include <bit>

#include "json-schema/object-rules.h"

namespace onpolicy::grammar {

// Beyond so many open demands, only whether each can be met is looked at, not whether all can together.
static constexpr int kMaxTogether = 10;
static constexpr uint64_t kImpossible = UINT64_MAX;

// The fewest further members with which all required keys are there and all demands are met; kImpossible: none will do.
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

}  // namespace onpolicy::grammar
