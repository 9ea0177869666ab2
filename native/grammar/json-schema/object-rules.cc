// States of objects, and the productions of each: one member, or the end.
#include "grammar/json-schema/object-rules.h"

#include <algorithm>

#include "base/limits.h"
#include "grammar/json-schema/rules.h"
#include "grammar/json/matched-text.h"

namespace onpolicy::grammar {

// Objects of up to this many keys have each key in one terminal with the comma before it.
static constexpr size_t kFewKeys = 16;

Symbol ObjectRules::Body(const Shape& shape, SeenSet excluded, bool tagged) {
  ObjectState state;
  state.spec = specs_.NumberOf(shape, tagged);
  state.next_rank.assign(static_cast<size_t>(specs_[state.spec].groups), 0);
  state.excluded = excluded;
  return Object(state);
}

Symbol ObjectRules::Object(const ObjectState& state) {
  return objects_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) { return Productions(state, false); });
  });
}

// The symbol after a further key's value: if a comma follows, reads the key back and adds it to those that must not come again.
Symbol ObjectRules::AfterFurther(const ObjectState& state) {
  return after_further_.Get(state, [&] {
    const Symbol after_comma = context_.grammar.Deferred([this, state](Grammar& grammar, const MatchedText& text, Symbol* result) {
      grammar.NoteTextRead();
      const size_t comma = text.view().rfind(',');
      std::string key;
      if (comma == std::string_view::npos || !text.FindMemberKey(comma, &key)) return false;
      ObjectState next = state;
      next.further = context_.seen.WithKey(state.further, key);
      *result = MemberAfterComma(next);
      return !grammar.IsEmptyRule(*result);
    });
    return context_.grammar.Rule([this, state, after_comma](Grammar&) {
      std::vector<SequenceId> result;
      const bool can_close = CanClose(state);
      if (!can_close || context_.seen.Size(state.further) < limits::kSeenValues)
        result.push_back(context_.Sequence(context_.marks.bare_comma, {after_comma}));
      if (can_close) result.push_back(context_.Sequence(context_.marks.close_object));
      return result;
    });
  });
}

Symbol ObjectRules::MemberAfterComma(const ObjectState& state) {
  return members_.Get(state, [&] {
    return context_.grammar.Rule([this, state](Grammar&) { return context_.Behind(context_.marks.gap, Productions(state, true)); });
  });
}

// The symbol after a further key's closing quote: no alternative if the schema names the key, or the object already has it.
Symbol ObjectRules::AfterOpenKey(FormulaId formula, SeenSet excluded, const ObjectState& next) {
  return after_open_key_.Get({formula, excluded, next}, [&] {
    const Symbol rest = context_.grammar.Rule([this, formula, excluded, next](Grammar&) {
      return std::vector<SequenceId>{context_.Sequence(context_.marks.colon, {rules_.Value(formula, excluded), Object(next)})};
    });
    const KeyNames* const names = &specs_[next.spec].names;
    return context_.grammar.Deferred([rest, names](Grammar& grammar, const MatchedText& text, Symbol* result) {
      *result = rest;
      if (grammar.assumes_new()) {
        grammar.NoteAssumptions({.keys = 1});
        if (!names->empty()) grammar.NoteNames(names);
        return true;
      }
      grammar.NoteTextRead();
      return !text.EndsWithKey(*names) && !text.RepeatsKey();
    });
  });
}

Symbol ObjectRules::AfterManyKeys(const ObjectState& state) {
  return after_many_.Get(state, [&] {
    return context_.grammar.ByTag([this, state](Grammar& grammar, uint32_t index) {
      const ObjectState next = Taken(state, index);
      const FormulaId formula = specs_[state.spec].known[index].formula;
      return many_values_.Get({formula, next}, [&] {
        return grammar.Rule([this, formula, next](Grammar&) {
          return std::vector<SequenceId>{context_.Sequence(context_.marks.colon, {rules_.Value(formula), Object(next)})};
        });
      });
    });
  });
}

// The symbol after a further key written as a tag: reads the key back and adds it to those that must not come again.
Symbol ObjectRules::AfterTaggedKey(FormulaId formula, const ObjectState& next) {
  return after_tagged_key_.Get({formula, next}, [&] {
    return context_.grammar.Deferred([this, formula, next](Grammar& grammar, const MatchedText& text, Symbol* result) {
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

// Builds the productions of the members that may come next in a state.
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
  // Adds the keys of an automaton from one of its states on.
  void AddMany(KeyAutomaton* keys, uint32_t start) {
    const NodeId key = context_.pool.Concat(before_, context_.pool.Leaf(keys, start));
    if (key != kNothing) result_.push_back(context_.Sequence(key, {rules_.AfterManyKeys(state_)}));
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
  // Adds one production for every set of the demands that the member may meet, with a value narrowed by them.
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
  // Adds a member whose key excluded objects may have.
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
    // Any key is one terminal, shared by all objects; named keys are rejected at its end.
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

template <typename Visit>
void ObjectRules::ForEachNext(const ObjectState& state, Visit visit) const {
  const ObjectSpec& spec = specs_[state.spec];
  for (size_t group = 0; group < spec.places.size(); group++) {
    const auto& places = spec.places[group];
    const uint32_t from = state.next_rank[group];
    if (from >= places.size()) continue;
    const uint64_t end = std::min<uint64_t>(places.size(), uint64_t{places[from].required} + 1);
    for (uint64_t rank = from; rank < end; rank++)
      if (const uint32_t index = places[rank].index; index != kUnlimited && IsOpen(state, index)) visit(index);
  }
  for (uint32_t index : spec.loose)
    if (IsOpen(state, index)) visit(index);
}

// Finds the ranks by bisection: the later the key, the fewer keys are left behind it. A required key meets one more demand.
bool ObjectRules::FindRanks(const ObjectState& state, size_t group, uint32_t* from, uint32_t* to) {
  const ObjectSpec& spec = specs_[state.spec];
  const auto& places = spec.places[group];
  if (state.next_rank[group] >= places.size()) return false;
  const uint32_t required = places[state.next_rank[group]].required;
  uint32_t first = state.next_rank[group], last = std::min(required, static_cast<uint32_t>(places.size() - 2));
  const auto can_finish = [&](uint32_t rank) {
    ObjectState next = state;
    next.first = false;
    if (spec.count_matters) next.count++;
    next.next_rank[group] = rank + 1;
    return CanFinish(next);
  };
  if (first > last) return false;
  if (!can_finish(first)) {
    // Only the required key can still fit.
    if (required != last || !can_finish(last)) return false;
    first = last;
  }
  uint32_t beyond = last + 1;
  *from = first;
  while (first + 1 < beyond) {
    const uint32_t middle = first + (beyond - first) / 2;
    (can_finish(middle) ? first : beyond) = middle;
  }
  *to = first;
  return true;
}

bool ObjectRules::CanTakeLoose(const ObjectState& state, bool required) {
  if (!specs_[state.spec].count_matters) return true;
  ObjectSpec::RankCount left = CountOpen(state);
  if (left.owed == 0 && required) return false;
  left.open--;
  left.owed -= required;
  ObjectState next = state;
  next.count++;
  return CanFinish(next, left);
}

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
    // Puts the comma and its blanks before all keys at once: with many keys, every blank would else be a state of each key.
    for (SequenceId production : context_.Behind(context_.marks.comma, Productions(state, true))) result.push_back(production);
    return result;
  }
  MemberProductions members(*this, state, is_member);
  if (spec.has_many && state.excluded == 0) {
    uint32_t from, to;
    for (size_t group = 0; group < spec.many.size(); group++)
      if (OrderedKeys* const keys = spec.many[group]; keys && FindRanks(state, group, &from, &to)) members.AddMany(keys, keys->Start(from, to));
    for (LooseKeys* const keys : {spec.many_required, spec.many_optional})
      if (keys && CanTakeLoose(state, keys == spec.many_required)) members.AddMany(keys, keys->Start(state.seen));
  } else {
    ForEachNext(state, [&](uint32_t index) { members.AddKnown(index); });
  }
  for (const FurtherKeys& further : spec.further) members.AddFurther(further);
  for (SequenceId production : members.Take()) result.push_back(production);
  return result;
}

}  // namespace onpolicy::grammar
