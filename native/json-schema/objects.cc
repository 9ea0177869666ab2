// Objects: which keys may come next, and what the object owes before it may close.
#include <algorithm>
#include <functional>

#include "base/spec-error.h"
#include "json-schema/rules.h"
#include "json/text.h"

namespace onpolicy::grammar {

static constexpr uint64_t kManyKeys = 1000;
// Objects of up to so many keys have each key in one terminal with the comma before it.
static constexpr size_t kFewKeys = 16;
static constexpr size_t kMaxDemands = 63;
static constexpr size_t kMaxKeyClasses = 300;

// A number for every distinct restriction of objects.
uint32_t SchemaRules::SpecOf(const Shape& shape, bool tagged) {
  std::string name;
  for (uint32_t atom : shape.members) name += "m" + std::to_string(atom);
  for (const std::string& key : shape.required) name += "r" + std::to_string(key.size()) + ":" + key;
  for (NodeId names : shape.names) name += "n" + std::to_string(names);
  for (uint32_t atom : shape.some) name += "s" + std::to_string(atom);
  name += "c" + std::to_string(shape.min) + "-" + std::to_string(shape.max) + (tagged ? "t" : "");
  auto [it, is_new] = object_spec_index_.emplace(name, static_cast<uint32_t>(object_specs_.size()));
  if (!is_new) return it->second;
  const uint32_t index = it->second;
  object_specs_.emplace_back();
  ObjectSpec spec;
  spec.tagged = tagged;
  spec.min = shape.min;
  spec.max = shape.max;
  spec.count_matters = shape.min > 0 || shape.max != UINT64_MAX;
  if (shape.some.size() > kMaxDemands)
    throw SpecError("UNSUPPORTED", "#", "an object that must differ in too many ways cannot be enforced");
  for (uint32_t atom : shape.some) spec.demands.push_back(compiler_.formulas().atom(atom).formula);
  const auto add = [&](const std::string& key, int group, uint32_t rank) {
    for (KnownKey& known : spec.known)
      if (known.key == key) return;
    KnownKey known;
    known.key = key;
    known.formula = shapes_.parts().MemberFormula(shape, key);
    known.text = shapes_.parts().KeyNode(key);
    known.group = group;
    known.rank = rank;
    known.required = shape.required.contains(key);
    if (!shapes_.parts().AllowsName(shape, key) || shapes_.IsEmpty(known.formula)) known.formula = kFalseFormula;
    uint64_t demands = 0;
    for (size_t i = 0; i < shape.some.size(); i++)
      if (grammar_.regex().IsLive(grammar_.regex().And({known.text, compiler_.formulas().atom(shape.some[i]).node}))) demands |= uint64_t{1} << i;
    known.meeting = MeetingOf(spec, known.formula, demands);
    spec.known.push_back(std::move(known));
  };
  // A key that several name has its place where its order is told.
  for (const bool any_order : {false, true})
    for (uint32_t atom : shape.members) {
      const Atom& members = compiler_.formulas().atom(atom);
      if (members.any_order != any_order) continue;
      const int group = any_order || members.properties.empty() ? -1 : spec.groups++;
      uint32_t rank = 0;
      for (const auto& [key, value] : members.properties) add(key, group, rank++);
    }
  for (const std::string& key : shape.required) add(key, -1, 0);
  AddExtras(shape, &spec);
  object_specs_[index] = std::move(spec);
  return index;
}

// Keys beyond the known ones, split by the patterns that they match and by the demands that are about them.
void SchemaRules::AddExtras(const Shape& shape, ObjectSpec* spec) {
  RegexPool& pool = grammar_.regex();
  std::vector<NodeId> patterns, known;
  for (uint32_t atom : shape.members)
    for (const auto& [node, value] : compiler_.formulas().atom(atom).patterns)
      if (std::find(patterns.begin(), patterns.end(), node) == patterns.end()) patterns.push_back(node);
  for (const KnownKey& key : spec->known) known.push_back(key.text);
  std::vector<NodeId> base{compiler_.values().strict_text().AnyText()};
  base.insert(base.end(), shape.names.begin(), shape.names.end());
  if (!known.empty()) base.push_back(pool.Not(pool.Alternate(std::move(known))));
  size_t classes = 0;
  const auto count_class = [&] {
    if (++classes > kMaxKeyClasses)
      throw SpecError("UNSUPPORTED", "#", "patternProperties overlap in too many ways to enforce");
  };
  const bool is_free = patterns.empty() && shape.names.empty() && !spec->tagged;
  const std::function<void(size_t, NodeId, FormulaId, uint64_t, bool)> add = [&](size_t at, NodeId keys, FormulaId formula,
                                                                                uint64_t demands, bool is_whole) {
    count_class();
    if (at < shape.some.size()) {
      const NodeId node = compiler_.formulas().atom(shape.some[at]).node;
      const NodeId inside = pool.And({keys, node}), outside = pool.And({keys, pool.Not(node)});
      const bool is_split = pool.IsLive(inside) && pool.IsLive(outside);
      if (pool.IsLive(inside)) add(at + 1, is_split ? inside : keys, formula, demands | uint64_t{1} << at, is_whole && !is_split);
      if (pool.IsLive(outside)) add(at + 1, is_split ? outside : keys, formula, demands, is_whole && !is_split);
      return;
    }
    const bool is_counted = spec->min > 0 || !shape.some.empty();
    spec->extras.push_back({keys, formula, is_counted ? pool.CountTexts(keys, kManyKeys) : kManyKeys, is_free && is_whole,
                            MeetingOf(*spec, formula, demands)});
  };
  // Goes through the sets of patterns that some key matches; a set that no key matches ends its branch.
  const std::function<void(size_t, NodeId, std::vector<NodeId>)> split = [&](size_t at, NodeId keys,
                                                                             std::vector<NodeId> matched) {
    if (!pool.IsLive(keys)) return;
    count_class();
    if (at < patterns.size()) {
      split(at + 1, pool.And({keys, pool.Not(patterns[at])}), matched);
      matched.push_back(patterns[at]);
      split(at + 1, pool.And({keys, patterns[at]}), std::move(matched));
      return;
    }
    std::vector<FormulaId> parts;
    for (uint32_t index : shape.members) {
      const Atom& atom = compiler_.formulas().atom(index);
      bool named = false;
      for (const auto& [node, value] : atom.patterns)
        if (std::find(matched.begin(), matched.end(), node) != matched.end()) {
          parts.push_back(value);
          named = true;
        }
      if (!named) parts.push_back(atom.rest);
    }
    const FormulaId formula = compiler_.formulas().And(std::move(parts));
    if (formula != kFalseFormula && !shapes_.IsEmpty(formula)) add(0, keys, formula, 0, true);
  };
  split(0, pool.And(std::move(base)), {});
}

Symbol SchemaRules::ObjectBody(const Shape& shape, uint32_t excluded, bool tagged) {
  ObjectState state;
  state.spec = SpecOf(shape, tagged);
  const ObjectSpec& spec = object_specs_[state.spec];
  state.next_rank.assign(static_cast<size_t>(spec.groups), 0);
  state.seen.assign(spec.known.size(), false);
  state.excluded = excluded;
  return Object(state);
}

Symbol SchemaRules::Object(const ObjectState& state) {
  auto it = objects_.find(state);
  if (it != objects_.end()) return it->second;
  const Symbol symbol = grammar_.Rule([this, state](Grammar&) { return ObjectProductions(state, false); });
  objects_.emplace(state, symbol);
  return symbol;
}

// After a further key's value: when a comma follows, the key is read back and joins those that must not come again.
Symbol SchemaRules::AfterExtra(const ObjectState& state) {
  auto it = after_extra_.find(state);
  if (it != after_extra_.end()) return it->second;
  const Symbol after_comma = grammar_.Deferred([this, state](Grammar& grammar, std::string_view text, Symbol* result) {
    grammar.NoteTextRead();
    const size_t comma = text.rfind(',');
    std::string key;
    if (comma == std::string_view::npos || !FindMemberKey(text.substr(0, comma), &key)) return false;
    std::vector<std::string> keys = extra_sets_[state.extra_set];
    keys.insert(std::lower_bound(keys.begin(), keys.end(), key), key);
    auto [set, is_new] = extra_set_index_.emplace(keys, static_cast<uint32_t>(extra_sets_.size()));
    if (is_new) extra_sets_.push_back(keys);
    ObjectState next = state;
    next.extra_set = set->second;
    if (ObjectProductions(next, true).empty()) return false;
    auto member = members_.find(next);
    if (member == members_.end())
      member = members_.emplace(next, grammar_.Rule([this, next](Grammar& grammar) {
        const Symbol rest = grammar.Rule([this, next](Grammar&) { return ObjectProductions(next, true); });
        return std::vector<SequenceId>{grammar.Sequence({grammar.Terminal(gap_), rest})};
      })).first;
    *result = member->second;
    return true;
  });
  const Symbol symbol = grammar_.Rule([this, state, after_comma](Grammar& grammar) {
    std::vector<SequenceId> result{grammar.Sequence({grammar.Terminal(bare_comma_), after_comma})};
    if (CanClose(state)) result.push_back(grammar.Sequence({grammar.Terminal(close_object_)}));
    return result;
  });
  after_extra_.emplace(state, symbol);
  return symbol;
}

// After a further key's closing quote, where a key that the object has already ends the reading.
Symbol SchemaRules::AfterOpenKey(FormulaId formula, uint32_t excluded, const ObjectState& next) {
  const auto key = std::make_tuple(formula, excluded, next);
  auto it = after_open_key_.find(key);
  if (it != after_open_key_.end()) return it->second;
  const Symbol rest = grammar_.Rule([this, formula, excluded, next](Grammar& grammar) {
    return std::vector<SequenceId>{grammar.Sequence({grammar.Terminal(colon_), Value(formula, excluded), Object(next)})};
  });
  const Symbol symbol = grammar_.Deferred([rest](Grammar& grammar, std::string_view text, Symbol* result) {
    *result = rest;
    if (grammar.assumes_new()) {
      grammar.NoteAssumptions({.keys = 1});
      return true;
    }
    grammar.NoteTextRead();
    return !RepeatsKey(text);
  });
  after_open_key_.emplace(key, symbol);
  return symbol;
}

bool SchemaRules::IsOpen(const ObjectState& state, size_t index) const {
  const ObjectSpec& spec = object_specs_[state.spec];
  const KnownKey& key = spec.known[index];
  if (key.formula == kFalseFormula || state.seen[index]) return false;
  return key.group < 0 || key.rank >= state.next_rank[static_cast<size_t>(key.group)];
}

SchemaRules::ObjectState SchemaRules::Taken(const ObjectState& state, size_t index) const {
  const ObjectSpec& spec = object_specs_[state.spec];
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
bool SchemaRules::CanClose(const ObjectState& state) const {
  const ObjectSpec& spec = object_specs_[state.spec];
  if ((state.count < spec.min && spec.count_matters) || ExcludesEmpty(state.excluded)) return false;
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    if (!key.required) continue;
    if (key.group < 0 ? !state.seen[i] : state.next_rank[static_cast<size_t>(key.group)] <= key.rank) return false;
  }
  return state.met == AllDemands(spec);
}

// Whether what is owed can still be delivered: no state without this is ever entered.
bool SchemaRules::CanFinish(const ObjectState& state) {
  const ObjectSpec& spec = object_specs_[state.spec];
  uint64_t owed = 0, open = 0;
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    const bool is_open = IsOpen(state, i);
    open += is_open;
    if (!key.required || is_open) {
      owed += key.required;
      continue;
    }
    const bool done = key.group < 0 ? state.seen[i] : false;
    // A grouped key that is no longer open was either written or passed over; passing over is never offered.
    if (key.formula == kFalseFormula || (key.group < 0 && !done)) return false;
  }
  for (const ExtraKeys& extra : spec.extras) open += extra.count;
  if (state.met != AllDemands(spec)) owed = LeastMembers(state);
  if (owed == kImpossible) return false;
  if (!spec.count_matters) return true;
  const uint64_t used = extra_sets_[state.extra_set].size();
  return state.count + owed <= spec.max && state.count + open >= spec.min + (open >= kManyKeys ? 0 : used);
}

// `keys` without those that the object already has.
NodeId SchemaRules::Unseen(const ObjectState& state, NodeId keys) {
  if (state.extra_set == 0) return keys;
  auto [it, is_new] = unseen_memo_.emplace(std::make_pair(keys, state.extra_set), kNothing);
  if (is_new) {
    std::vector<NodeId> seen;
    for (const std::string& key : extra_sets_[state.extra_set]) seen.push_back(shapes_.parts().KeyNode(key));
    it->second = grammar_.regex().And({keys, grammar_.regex().Not(grammar_.regex().Alternate(std::move(seen)))});
  }
  return it->second;
}

std::vector<SequenceId> SchemaRules::ObjectProductions(const ObjectState& state, bool is_member) {
  RegexPool& pool = grammar_.regex();
  const ObjectSpec spec = object_specs_[state.spec];
  std::vector<SequenceId> result;
  if (!CanFinish(state)) return result;
  if (CanClose(state) && !is_member) {
    const NodeId close = state.first ? close_empty_object_ : close_object_;
    result.push_back(grammar_.Sequence({grammar_.Terminal(spec.tagged ? tag_gap_ : close)}));
  }
  if (spec.count_matters && state.count >= spec.max) return result;
  if (!is_member && !state.first && !spec.tagged && spec.known.size() > kFewKeys) {
    // The comma and its blanks once for all keys: with each of many keys, every blank would be a state of all of them.
    std::vector<SequenceId> members = ObjectProductions(state, true);
    if (members.empty()) return result;
    const Symbol member = grammar_.Rule([members = std::move(members)](Grammar&) { return members; });
    result.push_back(grammar_.Sequence({grammar_.Terminal(comma_), member}));
    return result;
  }
  const NodeId before = pool.Concat(state.first || is_member ? kEpsilon : comma_, pool.Literal("\""));
  // Ordered keys may be passed over up to the first that is required.
  std::vector<uint32_t> limit(static_cast<size_t>(spec.groups), kUnlimited);
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    if (key.group >= 0 && key.required && IsOpen(state, i)) {
      uint32_t& least = limit[static_cast<size_t>(key.group)];
      least = std::min(least, key.rank);
    }
  }
  // Offers a member whose key, once written, leaves nothing to be compared later.
  const auto offer = [&](NodeId key_text, FormulaId formula, uint32_t excluded, const ObjectState& next, const ExtraKeys* extra) {
    if (!CanFinish(next) || shapes_.IsEmpty(formula)) return;
    if (spec.tagged) {
      const NodeId key = extra ? TaggedKeys(key_text) : key_text;
      if (!pool.IsLive(key)) return;
      if (extra) {
        result.push_back(grammar_.Sequence({grammar_.Terminal(key), AfterTaggedKey(formula, next)}));
      } else {
        result.push_back(grammar_.Sequence({grammar_.Terminal(key), TaggedValue(formula), Object(next)}));
      }
      return;
    }
    const bool is_open = extra && extra->open;
    const NodeId key = pool.Concat({before, key_text, is_open ? pool.Literal("\"") : key_end_});
    if (!pool.IsLive(key) || (excluded != 0 && grammar_.IsEmptyRule(Value(formula, excluded))) || !CanDiffer(next)) return;
    if (is_open) {
      result.push_back(grammar_.Sequence({grammar_.Terminal(key), AfterOpenKey(formula, excluded, next)}));
    } else {
      result.push_back(grammar_.Sequence(
          {grammar_.Terminal(key), Value(formula, excluded), extra ? AfterExtra(next) : Object(next)}));
    }
  };
  // The same where the object must differ from others, which may have this key.
  const auto offer_key = [&](const std::string& key, NodeId key_text, FormulaId formula, ObjectState next, const ExtraKeys* extra) {
    const std::vector<Head> heads = MemberHeads(state.excluded, key);
    next.excluded = 0;
    if (heads.empty()) return offer(key_text, formula, 0, next, extra);
    for (const Difference& difference : Differences(formula, heads)) {
      next.excluded = difference.rest;
      offer(key_text, difference.formula, difference.value, next, extra);
    }
  };
  const auto offer_extra = [&](NodeId keys, FormulaId formula, ObjectState next, const ExtraKeys& extra) {
    if (!extra.open) keys = Unseen(state, keys);
    std::vector<NodeId> others;
    for (const std::string& key : ExcludedKeys(state.excluded)) {
      others.push_back(shapes_.parts().KeyNode(key));
      offer_key(key, pool.And({keys, others.back()}), formula, next, &extra);
    }
    if (!others.empty()) keys = pool.And({keys, pool.Not(pool.Alternate(std::move(others)))});
    next.excluded = 0;
    offer(keys, formula, 0, next, &extra);
  };
  // Each member is offered once for every set of the demands that it may meet, with a value narrowed by them.
  const auto offer_all = [&](FormulaId formula, const Meeting& meeting, const ObjectState& next, const auto& offer_one) {
    const uint64_t maybe = meeting.maybe & ~state.met;
    for (uint64_t set = maybe;; set = (set - 1) & maybe) {
      ObjectState then = next;
      then.met |= meeting.always | set;
      offer_one(WithDemands(spec, formula, set), then);
      if (set == 0) break;
    }
  };
  for (size_t i = 0; i < spec.known.size(); i++) {
    const KnownKey& key = spec.known[i];
    if (!IsOpen(state, i) || (key.group >= 0 && key.rank > limit[static_cast<size_t>(key.group)])) continue;
    const NodeId text = spec.tagged ? TaggedKey(key.key) : key.text;
    offer_all(key.formula, key.meeting, Taken(state, i),
              [&](FormulaId formula, const ObjectState& next) { offer_key(key.key, text, formula, next, nullptr); });
  }
  for (const ExtraKeys& extra : spec.extras) {
    ObjectState next = state;
    next.first = false;
    if (spec.count_matters) next.count++;
    offer_all(extra.formula, extra.meeting, next,
              [&](FormulaId formula, const ObjectState& then) { offer_extra(extra.keys, formula, then, extra); });
  }
  return result;
}

}  // namespace onpolicy::grammar
