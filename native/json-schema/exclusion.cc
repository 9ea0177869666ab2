// Values that must differ from given arrays and objects: at each item or member either the difference is made, or what
// comes later must make it. So a repeated value is closed off before its last difference is gone, not at its end.
#include <algorithm>

#include "json-schema/rules.h"
#include "pushdown/text-tools.h"

namespace onpolicy::grammar {

// Longer texts are compared by an automaton of their own.
static constexpr size_t kShortText = 16;

// A number for a set of arrays and objects.
uint32_t SchemaRules::Exclude(std::vector<JsonValue> values) {
  if (values.empty()) return 0;
  std::vector<std::string> keys;
  for (const JsonValue& value : values) keys.push_back(CanonicalKey(value));
  std::sort(keys.begin(), keys.end());
  std::string name;
  for (const std::string& key : keys) name += key;
  auto [it, is_new] = excluded_set_index_.emplace(std::move(name), static_cast<uint32_t>(excluded_sets_.size()));
  if (is_new) excluded_sets_.push_back(std::move(values));
  return it->second;
}

// Whether ending here would repeat an excluded value.
bool SchemaRules::ExcludesEmpty(uint32_t excluded) const {
  return std::any_of(excluded_sets_[excluded].begin(), excluded_sets_[excluded].end(),
                     [](const JsonValue& value) { return value.items.empty() && value.members.empty(); });
}

// A seen string: while a mask is made, each token that may end one makes another.
NodeId SchemaRules::TextOf(const std::string& text) {
  if (text.size() <= kShortText) return compiler_.values().strict_text().Text(text);
  const auto [known, is_new] = long_texts_.emplace(text, kNothing);
  if (is_new) known->second = SpelledAnyway(grammar_.regex(), text);
  return known->second;
}

// Adds a value that is neither array nor object.
void SchemaRules::AddScalar(const JsonValue& value, ValueSet* set) {
  FormulaTable& formulas = compiler_.formulas();
  if (value.IsString()) set->texts.push_back(TextOf(value.text));
  Decimal decimal;
  if (value.IsNumber() && ParseDecimal(value.text, &decimal))
    set->numbers.push_back(compiler_.values().numbers().Ordered(decimal, kEqual));
  if (value.type == JsonValue::kNull) set->scalars.push_back(formulas.Types(kNullType));
  if (value.IsBool()) set->scalars.push_back(formulas.Bools(value.type == JsonValue::kTrue ? 2 : 1));
}

// Spellings that are not compared are left out; where the formula has none, the states away from the seen values are its
// own.
FormulaId SchemaRules::WithoutScalars(FormulaId formula, const ValueSet& seen) {
  FormulaTable& formulas = compiler_.formulas();
  RegexPool& pool = grammar_.regex();
  struct Restriction {
    Atom::Kind kind;
    unsigned type;
    const std::vector<NodeId>& values;
    NodeId spellings;         // that are compared
    std::string_view foreign;  // no value of the type is spelled so
  };
  const Restriction restrictions[] = {{Atom::kString, kStringType, seen.texts, compiler_.values().strict_text().AnyText(), "\""},
                                      {Atom::kNumber, kNumberType, seen.numbers, compiler_.values().numbers().Plain(), "z"}};
  const auto has = [&](FormulaId of, unsigned type, const auto& test) {
    const std::vector<Shape>& shapes = shapes_.Of(of);
    return std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) { return shape.type == type && test(shape.text); });
  };
  const auto without = [&](bool is_spelled) {
    std::vector<FormulaId> parts{formula};
    for (FormulaId scalar : seen.scalars) parts.push_back(formulas.Not(scalar));
    for (const Restriction& restriction : restrictions) {
      if (restriction.values.empty()) continue;
      const bool is_open = is_spelled || has(formula, restriction.type, [](NodeId text) { return text == kAnyText; });
      const NodeId others = pool.Not(pool.Alternate(restriction.values));
      Atom atom;
      atom.kind = restriction.kind;
      atom.node = is_open ? pool.And({restriction.spellings, others}) : others;
      parts.push_back(formulas.AtomOf(std::move(atom)));
    }
    return formulas.And(std::move(parts));
  };
  // Beside the seen values, less of the formula may be left that says how a value is spelled.
  const FormulaId result = without(false);
  const bool is_foreign = std::any_of(std::begin(restrictions), std::end(restrictions), [&](const Restriction& restriction) {
    return !restriction.values.empty() &&
           has(result, restriction.type, [&](NodeId text) { return text != kAnyText && pool.Matches(text, restriction.foreign); });
  });
  return is_foreign ? without(true) : result;
}

// The value equals one of the heads, and the rest must differ from what followed it; or it equals none.
std::vector<SchemaRules::Difference> SchemaRules::Differences(FormulaId formula, const std::vector<Head>& heads) {
  std::map<std::string, std::vector<const Head*>> groups;
  for (const Head& head : heads) groups[CanonicalKey(head.value)].push_back(&head);
  std::vector<Difference> result;
  ValueSet scalars;
  std::vector<JsonValue> compounds;
  for (const auto& [key, group] : groups) {
    const JsonValue& value = group[0]->value;
    if (value.IsArray() || value.IsObject()) {
      compounds.push_back(value);
    } else {
      AddScalar(value, &scalars);
    }
    std::vector<JsonValue> rests;
    for (const Head* head : group) rests.push_back(head->rest);
    result.push_back({compiler_.formulas().And({formula, compiler_.values().Exactly(value)}), 0, Exclude(std::move(rests)), value});
  }
  result.push_back({WithoutScalars(formula, scalars), Exclude(std::move(compounds)), 0, {}});
  return result;
}

std::vector<SchemaRules::Head> SchemaRules::ItemHeads(uint32_t excluded) const {
  std::vector<Head> heads;
  for (const JsonValue& value : excluded_sets_[excluded]) {
    if (value.items.empty()) continue;
    Head head{value.items[0], value};
    head.rest.items.erase(head.rest.items.begin());
    heads.push_back(std::move(head));
  }
  return heads;
}

std::vector<SchemaRules::Head> SchemaRules::MemberHeads(uint32_t excluded, const std::string& key) const {
  std::vector<Head> heads;
  for (const JsonValue& value : excluded_sets_[excluded])
    if (const JsonValue* member = value.Find(key)) {
      Head head{*member, value};
      std::erase_if(head.rest.members, [&](const auto& entry) { return entry.first == key; });
      heads.push_back(std::move(head));
    }
  return heads;
}

std::vector<std::string> SchemaRules::ExcludedKeys(uint32_t excluded) const {
  std::vector<std::string> keys;
  for (const JsonValue& value : excluded_sets_[excluded])
    for (const auto& [key, member] : value.members) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// Whether something that differs from all excluded arrays can still follow.
bool SchemaRules::CanDiffer(const ArrayState& state) {
  if (state.excluded == 0 || CanCloseArray(state)) return true;
  // Seen values are among those that are counted.
  const ArraySpec& spec = array_specs_[state.spec];
  const uint64_t excluded = excluded_sets_[state.excluded].size() + value_sets_[state.seen_set].keys.size();
  if (state.index < spec.max) {
    const FormulaId item = shapes_.parts().ItemFormula(spec.shape, static_cast<size_t>(state.index));
    if (shapes_.CountSureValues(item, excluded + 1) > excluded) return true;
  }
  return !grammar_.IsEmptyRule(Array(state));
}

bool SchemaRules::CanDiffer(const ObjectState& state) {
  if (state.excluded == 0 || CanClose(state)) return true;
  const uint64_t excluded = excluded_sets_[state.excluded].size();
  const ObjectSpec spec = object_specs_[state.spec];
  for (size_t i = 0; i < spec.known.size(); i++)
    if (IsOpen(state, i) && CanFinish(Taken(state, i)) && shapes_.CountSureValues(spec.known[i].formula, excluded + 1) > excluded)
      return true;
  return !grammar_.IsEmptyRule(Object(state));
}

}  // namespace onpolicy::grammar
