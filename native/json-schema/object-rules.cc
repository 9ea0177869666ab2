// States of objects, and the productions of each: one member, or the end.
#include "json-schema/object-rules.h"

#include <algorithm>
#include <bit>

#include "base/limits.h"
#include "json-schema/rules.h"
#include "json/text.h"

namespace onpolicy::grammar {

// Objects of up to so many keys have each key in one terminal with the comma before it.
static constexpr size_t kFewKeys = 16;
static constexpr uint64_t kImpossible = UINT64_MAX;

Symbol ObjectRules::Body(const Shape& shape, SeenSet excluded, bool tagged) {
  ObjectState state;
  state.spec = specs_.NumberOf(shape, tagged);
  state.next_rank.assign(static_cast<size_t>(specs_[state.spec].groups), 0);
  state.seen.assign(specs_[state.spec].known.size(), false);
  state.excluded = excluded;
  return Object(state);
}

Symbol ObjectRules::Object(const ObjectState& state) {
  return objects_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) { return Productions(state, false); });
  });
}

// After a further key's value: when a comma follows, the key is read back and joins those that must not come again.
Symbol ObjectRules::AfterFurther(const ObjectState& state) {
  return after_further_.Get(state, [&] {
    const Symbol after_comma = context_.grammar.Deferred([this, state](Grammar& grammar, std::string_view text, Symbol* result) {
      grammar.NoteTextRead();
      const size_t comma = text.rfind(',');
      std::string key;
      if (comma == std::string_view::npos || !FindMemberKey(text.substr(0, comma), &key)) return false;
      ObjectState next = state;
      next.further = context_.seen.WithKey(state.further, key);
      *result = MemberAfterComma(next);
      return !grammar.IsEmptyRule(*result);
    });
    return context_.grammar.Rule([this, state, after_comma](Grammar&) {
      std::vector<SequenceId> result{context_.Sequence(context_.marks.bare_comma, {after_comma})};
      if (CanClose(state)) result.push_back(context_.Sequence(context_.marks.close_object));
      return result;
    });
  });
}

Symbol ObjectRules::MemberAfterComma(const ObjectState& state) {
  return members_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) { return context_.Behind(context_.marks.gap, Productions(state, true)); });
  });
}

// After a further key's closing quote: a key that the schema names, or that the object has already, ends the alternative.
Symbol ObjectRules::AfterOpenKey(FormulaId formula, SeenSet excluded, const ObjectState& next) {
  return after_open_key_.Get({formula, excluded, next}, [&] {
    const Symbol rest = context_.grammar.Rule([this, formula, excluded, next](Grammar&) {
      return std::vector<SequenceId>{context_.Sequence(context_.marks.colon, {rules_.Value(formula, excluded), Object(next)})};
    });
    const KeyNames* const names = &specs_[next.spec].names;
    return context_.grammar.Deferred([rest, names](Grammar& grammar, std::string_view text, Symbol* result) {
      *result = rest;
      if (grammar.assumes_new()) {
        grammar.NoteAssumptions({.keys = 1});
        if (!names->empty()) grammar.NoteNames(names);
        return true;
      }
      grammar.NoteTextRead();
      return !EndsWithKey(text, *names) && !RepeatsKey(text);
    });
  });
}

// After a further key that is written as a tag: it is read back, and joins those that must not come again.
Symbol ObjectRules::AfterTaggedKey(FormulaId formula, const ObjectState& next) {
  return after_tagged_key_.Get({formula, next}, [&] {
    return context_.grammar.Deferred([this, formula, next](Grammar& grammar, std::string_view text, Symbol* result) {
      grammar.NoteTextRead();
      std::string key;
      if (!rules_.tags().FindKey(text, &key) || context_.seen.HasKey(next.further, key)) return false;
      ObjectState after = next;
      after.further = context_.seen.WithKey(next.further, key);
      *result = tagged_members_.Get({formula, after}, [&] {
        return grammar.Rule([this, formula, after](Grammar& inner) {
          return std::vector<SequenceId>{inner.Sequence({rules_.tags().Value(formula), Object(after)})};
        });
      });
      return true;
    });
  });
}

bool ObjectRules::IsOpen(const ObjectState& state, size_t index) const {
  const KnownKey& key = specs_[state.spec].known[index];
  if (key.formula == kFalseFormula || state.seen[index]) return false;
  return key.group < 0 || key.rank >= state.next_rank[static_cast<size_t>(key.group)];
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
    next.seen[index] = true;
  }
  return next;
}

// Whether everything that is owed has been delivered.
bool ObjectRules::CanClose(const ObjectState& state) const {
  const ObjectSpec& spec = specs_[state.spec];
  if ((state.count < spec.min && spec.count_matters) || context_.seen.HasEmpty(state.excluded)) return false;
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    if (!key.required) continue;
    if (key.group < 0 ? !state.seen[i] : state.next_rank[static_cast<size_t>(key.group)] <= key.rank) return false;
  }
  return state.met == spec.AllDemands();
}

// Whether what is owed can still be delivered: no state without this is ever entered.
bool ObjectRules::CanFinish(const ObjectState& state) {
  const ObjectSpec& spec = specs_[state.spec];
  uint64_t owed = 0, open = 0;
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    const bool is_open = IsOpen(state, i);
    open += is_open;
    owed += key.required && is_open;
    if (!key.required || is_open) continue;
    // A key of a group that is no longer open was written: none that is required is ever passed over.
    if (key.formula == kFalseFormula || (key.group < 0 && !state.seen[i])) return false;
  }
  for (const FurtherKeys& further : spec.further) open += further.count;
  if (state.met != spec.AllDemands()) owed = LeastMembers(state);
  if (owed == kImpossible) return false;
  if (!spec.count_matters) return true;
  const uint64_t used = context_.seen.Size(state.further);
  return state.count + owed <= spec.max && state.count + open >= spec.min + (open >= kCountedKeys ? 0 : used);
}

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
  if (open > limits::kOpenDemands) return required + static_cast<uint64_t>(open);
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

// Whether something that differs from all excluded objects can still follow.
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

// The productions of the members that may come next in a state.
class MemberProductions {
 public:
  MemberProductions(ObjectRules& rules, const ObjectState& state, bool is_member)
      : rules_(rules), context_(rules.context_), state_(state), spec_(rules.specs_[state.spec]) {
    const Punctuation& marks = context_.marks;
    before_ = context_.pool.Concat(state.first || is_member ? kEpsilon : marks.comma, marks.quote);
  }

  void AddKnown(size_t index) {
    const KnownKey& key = spec_.known[index];
    const NodeId text = spec_.tagged ? rules_.rules_.tags().KnownKey(key.key, state_.first) : key.text;
    ForEachMeeting(key.formula, key.meeting, rules_.Taken(state_, index), [&](FormulaId formula, const ObjectState& next) {
      AddDiffering(key.key, text, formula, next, nullptr);
    });
  }
  void AddFurther(const FurtherKeys& further) {
    ObjectState next = state_;
    next.first = false;
    if (spec_.count_matters) next.count++;
    ForEachMeeting(further.formula, further.meeting, next, [&](FormulaId formula, ObjectState then) {
      NodeId keys = further.open ? further.keys : context_.seen.WithoutKeys(further.keys, state_.further);
      std::vector<NodeId> others;
      for (const std::string& key : ExcludedKeys(context_.seen, state_.excluded)) {
        others.push_back(context_.parts.KeyNode(key));
        AddDiffering(key, context_.pool.And({keys, others.back()}), formula, then, &further);
      }
      if (!others.empty()) keys = context_.pool.And({keys, context_.pool.Not(context_.pool.Alternate(std::move(others)))});
      then.excluded = 0;
      Add(keys, formula, 0, then, &further);
    });
  }
  std::vector<SequenceId> Take() { return std::move(result_); }

 private:
  // One production for every set of the demands that it may meet, with a value narrowed by them.
  template <typename Add>
  void ForEachMeeting(FormulaId formula, const Meeting& meeting, const ObjectState& next, Add add) {
    const uint64_t maybe = meeting.maybe & ~state_.met;
    for (uint64_t set = maybe;; set = (set - 1) & maybe) {
      ObjectState then = next;
      then.met |= meeting.always | set;
      add(rules_.specs_.WithDemands(spec_, formula, set), then);
      if (set == 0) break;
    }
  }
  // A member of a key that excluded objects may have.
  void AddDiffering(const std::string& key, NodeId text, FormulaId formula, ObjectState next, const FurtherKeys* further) {
    if (state_.excluded == 0) return Add(text, formula, 0, next, further);
    for (const Difference& difference : MemberDifferences(context_.seen, context_.values, formula, state_.excluded, key)) {
      next.excluded = difference.rest;
      Add(text, difference.formula, difference.value, next, further);
    }
  }
  void Add(NodeId text, FormulaId formula, SeenSet excluded, const ObjectState& next, const FurtherKeys* further) {
    if (!rules_.CanFinish(next) || context_.shapes.IsEmpty(formula)) return;
    if (spec_.tagged) return AddTagged(text, formula, next, further);
    const bool is_open = further && further->open, is_any = is_open && text == further->keys;
    // Any key in one terminal for all objects: the ones that are named are refused at its end.
    const NodeId inside = is_any ? context_.values.strict_text().AnyText() : text;
    const NodeId key = context_.pool.Concat({before_, inside, is_open ? context_.marks.quote : context_.marks.key_end});
    if (is_any) context_.grammar.SharedTerminal(key);
    const auto is_empty = [&] { return excluded != 0 && context_.grammar.IsEmptyRule(rules_.rules_.Value(formula, excluded)); };
    if (!context_.pool.IsLive(key) || is_empty() || !rules_.CanDiffer(next)) return;
    if (is_open) {
      result_.push_back(context_.Sequence(key, {rules_.AfterOpenKey(formula, excluded, next)}));
    } else {
      const Symbol value = rules_.rules_.Value(formula, excluded);
      result_.push_back(context_.Sequence(key, {value, further ? rules_.AfterFurther(next) : rules_.Object(next)}));
    }
  }
  void AddTagged(NodeId text, FormulaId formula, const ObjectState& next, const FurtherKeys* further) {
    const NodeId key = further ? rules_.rules_.tags().FurtherKeys(text, state_.first) : text;
    if (!context_.pool.IsLive(key)) return;
    if (further) {
      result_.push_back(context_.Sequence(key, {rules_.AfterTaggedKey(formula, next)}));
    } else {
      result_.push_back(context_.Sequence(key, {rules_.rules_.tags().Value(formula), rules_.Object(next)}));
    }
  }

  ObjectRules& rules_;
  RuleContext& context_;
  const ObjectState& state_;
  const ObjectSpec& spec_;
  NodeId before_;
  std::vector<SequenceId> result_;
};

std::vector<SequenceId> ObjectRules::Productions(const ObjectState& state, bool is_member) {
  const ObjectSpec& spec = specs_[state.spec];
  std::vector<SequenceId> result;
  if (!CanFinish(state)) return result;
  if (CanClose(state) && !is_member) {
    const Punctuation& marks = context_.marks;
    result.push_back(context_.Sequence(spec.tagged ? marks.tag_gap : state.first ? marks.close_empty_object : marks.close_object));
  }
  if (spec.count_matters && state.count >= spec.max) return result;
  if (!is_member && !state.first && !spec.tagged && spec.known.size() > kFewKeys) {
    // The comma and its blanks once for all keys: with each of many keys, every blank would be a state of all of them.
    for (SequenceId production : context_.Behind(context_.marks.comma, Productions(state, true))) result.push_back(production);
    return result;
  }
  // Ordered keys may be passed over up to the first that is required.
  std::vector<uint32_t> limit(static_cast<size_t>(spec.groups), kUnlimited);
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    if (key.group < 0 || !key.required || !IsOpen(state, i)) continue;
    uint32_t& least = limit[static_cast<size_t>(key.group)];
    least = std::min(least, key.rank);
  }
  MemberProductions members(*this, state, is_member);
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    if (IsOpen(state, i) && (key.group < 0 || key.rank <= limit[static_cast<size_t>(key.group)])) members.AddKnown(i);
  }
  for (const FurtherKeys& further : spec.further) members.AddFurther(further);
  for (SequenceId production : members.Take()) result.push_back(production);
  return result;
}

}  // namespace onpolicy::grammar
