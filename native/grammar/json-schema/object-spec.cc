// Keys in the order in which schemas name them; further keys split by patterns and demands.
#include "grammar/json-schema/object-spec.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/limits.h"
#include "base/spec-error.h"

namespace onpolicy::grammar {

// From this many keys of an object on, automata are used instead of an expression for each key in each state.
static constexpr size_t kManyKeys = 128;
// Work counted for each of these keys.
static constexpr uint64_t kManyKeysWork = 60;
// Most lists of properties of one object with many keys that keep their order. Those of further ones come in any order.
static constexpr int kOrders = 8;

uint32_t ObjectSpecs::NumberOf(const Shape& shape, bool tagged) {
  const auto [known, is_new] = index_.try_emplace({shape, tagged}, static_cast<uint32_t>(specs_.size()));
  const uint32_t number = known->second;
  if (!is_new) return number;
  specs_.emplace_back();
  specs_[number] = Make(shape, tagged);
  return number;
}

ObjectSpec ObjectSpecs::Make(const Shape& shape, bool tagged) {
  ObjectSpec spec;
  spec.tagged = tagged;
  spec.min = shape.min;
  spec.max = shape.max;
  spec.count_matters = shape.min > 0 || shape.max != UINT64_MAX;
  if (shape.some.size() > limits::kDemands)
    throw SpecError("UNSUPPORTED", "#", "an object that must differ in too many ways cannot be enforced");
  for (uint32_t atom : shape.some) spec.demands.push_back(context_.formulas.atom(atom).formula);
  std::unordered_set<std::string_view> added;  // keys of the atoms and the shape, which stay where they are
  const auto add = [&](const std::string& key, int group, uint32_t rank) {
    if (!added.insert(key).second) return;
    KnownKey known = Known(shape, spec, key);
    known.group = group;
    known.rank = rank;
    spec.known.push_back(std::move(known));
  };
  // A key that several atoms name gets its place from one that keeps an order. A list of one key has none to keep.
  for (const bool any_order : {false, true})
    for (uint32_t atom : shape.members) {
      const Atom& members = context_.formulas.atom(atom);
      if (members.any_order != any_order) continue;
      const bool has_order = !any_order && members.properties.size() > 1 && (spec.groups < kOrders || spec.known.size() < kManyKeys);
      const int group = has_order ? spec.groups++ : -1;
      uint32_t rank = 0;
      for (const auto& [key, value] : members.properties) add(key, group, rank++);
    }
  for (const std::string& key : shape.required) add(key, -1, 0);
  for (const KnownKey& key : spec.known) spec.names.push_back(key.key);
  std::sort(spec.names.begin(), spec.names.end());
  CountRanks(&spec);
  CountLoose(&spec);
  FindMany(&spec);
  AddFurther(shape, &spec);
  return spec;
}

// Returns a key in the spelling that most JSON writers use.
static std::string UsualSpelling(const std::string& key) {
  constexpr std::string_view kShort = "\b\f\n\r\t", kLetters = "bfnrt";
  std::string text;
  for (char byte : key) {
    const size_t at = kShort.find(byte);
    text += at == std::string_view::npos ? JsonSpelling(static_cast<uint8_t>(byte)) : std::string{'\\', kLetters[at]};
  }
  return text;
}

template <typename Made, typename... Given>
Made* ObjectSpecs::KeysOf(std::vector<KeyAutomaton::Key> keys, Given&&... given) {
  if (keys.empty()) return nullptr;
  context_.pool.budget().Spend(kManyKeysWork * keys.size());
  return static_cast<Made*>(context_.pool.Own(std::make_unique<Made>(std::move(keys), std::forward<Given>(given)...)));
}

void ObjectSpecs::FindMany(ObjectSpec* spec) {
  spec->has_many = !spec->tagged && spec->demands.empty() && spec->known.size() >= kManyKeys;
  if (!spec->has_many) return;
  std::vector<std::vector<KeyAutomaton::Key>> groups(static_cast<size_t>(spec->groups));
  std::vector<KeyAutomaton::Key> required, optional;
  for (uint32_t index = 0; index < spec->known.size(); index++) {
    const KnownKey& key = spec->known[index];
    if (key.formula == kFalseFormula) continue;
    auto& keys = key.group >= 0 ? groups[static_cast<size_t>(key.group)] : key.required ? required : optional;
    keys.push_back({UsualSpelling(key.key), key.rank, index});
  }
  for (auto& keys : groups) spec->many.push_back(KeysOf<OrderedKeys>(std::move(keys)));
  const uint32_t first_optional = static_cast<uint32_t>(required.size());
  spec->many_required = KeysOf<LooseKeys>(std::move(required), *spec->loose_sets, 0u);
  spec->many_optional = KeysOf<LooseKeys>(std::move(optional), *spec->loose_sets, first_optional);
  uint32_t number = 0;
  for (LooseKeys* keys : {spec->many_required, spec->many_optional})
    if (keys)
      for (uint32_t index : keys->Tags()) spec->known[index].seen = number++;
}

void ObjectSpecs::CountLoose(ObjectSpec* spec) {
  for (uint32_t index = 0; index < spec->known.size(); index++)
    if (const KnownKey& key = spec->known[index]; key.group < 0 && key.formula != kFalseFormula) {
      spec->loose.push_back(index);
      spec->loose_count.owed += key.required;
    }
  spec->loose_count.open = spec->loose.size();
  uint32_t required = 0, optional = static_cast<uint32_t>(spec->loose_count.owed);
  for (uint32_t index : spec->loose) spec->known[index].seen = spec->known[index].required ? required++ : optional++;
  spec->loose_sets = std::make_unique<KeySets>(optional);
}

void ObjectSpecs::CountRanks(ObjectSpec* spec) {
  spec->from_rank.resize(static_cast<size_t>(spec->groups));
  spec->places.resize(static_cast<size_t>(spec->groups));
  for (uint32_t index = 0; index < spec->known.size(); index++) {
    KnownKey& key = spec->known[index];
    const bool is_possible = key.formula != kFalseFormula;
    spec->lacks_required = spec->lacks_required || (key.required && !is_possible);
    if (key.group < 0) continue;
    auto& ranks = spec->from_rank[static_cast<size_t>(key.group)];
    if (ranks.size() < key.rank + size_t{2}) ranks.resize(key.rank + size_t{2});
    auto& places = spec->places[static_cast<size_t>(key.group)];
    places.resize(ranks.size());
    places[key.rank].index = index;
    if (is_possible && key.required) places[key.rank].required = key.rank;
    ranks[key.rank].open += is_possible;
    ranks[key.rank].owed += is_possible && key.required;
  }
  for (auto& places : spec->places)
    for (size_t rank = places.size(); rank-- > 1;) places[rank - 1].required = std::min(places[rank - 1].required, places[rank].required);
  for (auto& ranks : spec->from_rank)
    for (size_t rank = ranks.size(); rank-- > 1;) {
      ranks[rank - 1].open += ranks[rank].open;
      ranks[rank - 1].owed += ranks[rank].owed;
    }
}

KnownKey ObjectSpecs::Known(const Shape& shape, const ObjectSpec& spec, const std::string& key) {
  RegexPool& pool = context_.pool;
  KnownKey known{.key = key, .formula = context_.parts.MemberFormula(shape, key), .text = context_.parts.KeyNode(key)};
  known.required = shape.required.contains(key);
  if (!context_.parts.AllowsName(shape, key) || context_.shapes.IsEmpty(known.formula)) known.formula = kFalseFormula;
  uint64_t demands = 0;
  for (size_t i = 0; i < shape.some.size(); i++)
    if (pool.IsLive(pool.And({known.text, context_.formulas.atom(shape.some[i]).node}))) demands |= uint64_t{1} << i;
  known.meeting = MeetingOf(spec, known.formula, demands);
  return known;
}

// Returns which of the demands about its key a member with this formula meets.
Meeting ObjectSpecs::MeetingOf(const ObjectSpec& spec, FormulaId formula, uint64_t of_key) {
  Meeting meeting;
  for (size_t i = 0; i < spec.demands.size(); i++) {
    const uint64_t bit = uint64_t{1} << i;
    if (!(of_key & bit) || formula == kFalseFormula) continue;
    const FormulaId narrowed = WithDemands(spec, formula, bit);
    if (narrowed == formula) {
      meeting.always |= bit;
    } else if (!context_.shapes.IsEmpty(narrowed)) {
      meeting.maybe |= bit;
    }
  }
  if (std::popcount(meeting.maybe) > limits::kUndecidedDemands)
    throw SpecError("UNSUPPORTED", "#", "the ways in which a member must differ are too many to enforce");
  return meeting;
}

FormulaId ObjectSpecs::WithDemands(const ObjectSpec& spec, FormulaId formula, uint64_t demands) {
  std::vector<FormulaId> parts{formula};
  for (uint64_t rest = demands; rest != 0; rest &= rest - 1)
    parts.push_back(spec.demands[static_cast<size_t>(std::countr_zero(rest))]);
  return context_.formulas.And(std::move(parts));
}

// Adds the keys beyond the known ones, split by the patterns that they match and by the demands about them.
void ObjectSpecs::AddFurther(const Shape& shape, ObjectSpec* spec) {
  RegexPool& pool = context_.pool;
  const bool is_free = context_.parts.Patterns(shape).empty() && shape.names.empty() && !spec->tagged;
  const bool is_counted = spec->min > 0 || !shape.some.empty();
  size_t classes = 0;
  const auto count_class = [&] {
    if (++classes > limits::kKeyClasses)
      throw SpecError("UNSUPPORTED", "#", "patternProperties overlap in too many ways to enforce");
  };
  // `demands`: those of the first `at` that are about the keys. `is_whole`: no demand has split the keys.
  const auto add = [&](const auto& self, size_t at, NodeId keys, FormulaId formula, uint64_t demands, bool is_whole) -> void {
    count_class();
    if (at == shape.some.size()) {
      spec->further.push_back({keys, formula, is_counted ? pool.CountTexts(keys, kCountedKeys) : kCountedKeys, is_free && is_whole,
                               MeetingOf(*spec, formula, demands)});
      return;
    }
    const NodeId node = context_.formulas.atom(shape.some[at]).node;
    const NodeId inside = pool.And({keys, node}), outside = pool.And({keys, pool.Not(node)});
    const bool has_inside = pool.IsLive(inside), has_outside = pool.IsLive(outside), is_split = has_inside && has_outside;
    if (has_inside)
      self(self, at + 1, is_split ? inside : keys, formula, demands | uint64_t{1} << at, is_whole && !is_split);
    if (has_outside) self(self, at + 1, is_split ? outside : keys, formula, demands, is_whole && !is_split);
  };
  context_.parts.ForEachKeyClass(shape, context_.parts.FurtherKeys(shape), [&](NodeId keys, FormulaId formula) {
    count_class();
    if (formula != kFalseFormula && !context_.shapes.IsEmpty(formula)) add(add, 0, keys, formula, 0, true);
    return true;
  });
}

}  // namespace onpolicy::grammar
