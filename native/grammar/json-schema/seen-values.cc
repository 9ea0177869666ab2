// Interns sets. Strings and numbers are excluded by automata; arrays and objects are compared member by member.
#include "grammar/json-schema/seen-values.h"

#include <algorithm>

namespace onpolicy::grammar {

static JsonValue TextValue(const std::string& text) {
  JsonValue value;
  value.type = JsonValue::kString;
  value.text = text;
  return value;
}

// Returns true if all numbers in a value are within the limits of comparison.
static bool IsWritable(const JsonValue& value) {
  Decimal decimal;
  if (value.IsNumber()) return ParseDecimal(value.text, &decimal);
  return std::all_of(value.items.begin(), value.items.end(), IsWritable) &&
         std::all_of(value.members.begin(), value.members.end(), [](const auto& member) { return IsWritable(member.value); });
}

SeenSet SeenValues::WithAll(SeenSet set, std::span<const JsonValue> values) {
  std::vector<std::string> keys = sets_[set].keys;
  std::vector<const JsonValue*> added;
  for (const JsonValue& value : values) {
    std::string key = CanonicalKey(value);
    const auto place = std::lower_bound(keys.begin(), keys.end(), key);
    if (place != keys.end() && *place == key) continue;
    keys.insert(place, std::move(key));
    added.push_back(&value);
  }
  if (added.empty()) return set;
  const auto [known, is_new] = index_.emplace(keys, static_cast<SeenSet>(sets_.size()));
  if (!is_new) return known->second;
  Set made = sets_[set];
  made.keys = std::move(keys);
  for (const JsonValue* value : added)
    if (IsWritable(*value)) Add(*value, &made);
  sets_.push_back(std::move(made));
  return known->second;
}

SeenSet SeenValues::WithKey(SeenSet set, const std::string& key) { return With(set, TextValue(key)); }

SeenSet SeenValues::OfType(SeenSet set, JsonValue::Type type) {
  std::vector<JsonValue> values = sets_[set].compounds;
  std::erase_if(values, [&](const JsonValue& value) { return value.type != type; });
  return Of(values);
}

bool SeenValues::Has(SeenSet set, const JsonValue& value) const {
  const std::vector<std::string>& keys = sets_[set].keys;
  return std::binary_search(keys.begin(), keys.end(), CanonicalKey(value));
}

bool SeenValues::HasKey(SeenSet set, const std::string& key) const { return Has(set, TextValue(key)); }

bool SeenValues::HasEmpty(SeenSet set) const {
  return std::any_of(sets_[set].compounds.begin(), sets_[set].compounds.end(),
                     [](const JsonValue& value) { return value.items.empty() && value.members.empty(); });
}

void SeenValues::Add(const JsonValue& value, Set* set) {
  FormulaTable& formulas = values_.formulas();
  Decimal decimal;
  if (value.IsArray() || value.IsObject()) {
    set->compounds.push_back(value);
  } else if (value.IsString()) {
    set->texts.push_back(values_.free_text().Text(value.text));
  } else if (value.IsNumber() && ParseDecimal(value.text, &decimal)) {
    set->numbers.push_back(values_.numbers().Ordered(decimal, kEqual));
  } else {
    set->scalars.push_back(value.IsBool() ? formulas.Bools(value.type == JsonValue::kTrue ? 2 : 1) : formulas.Types(kNullType));
  }
}

bool SeenValues::HasShape(FormulaId formula, unsigned type, auto test) {
  const std::vector<Shape>& shapes = shapes_.Of(formula);
  return std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) { return shape.type == type && test(shape.text); });
}

// `is_spelled`: also restricts values to the spellings that are compared.
FormulaId SeenValues::Restricted(FormulaId formula, const Set& set, bool is_spelled) {
  FormulaTable& formulas = values_.formulas();
  RegexPool& pool = values_.pool();
  std::vector<FormulaId> parts{formula};
  for (FormulaId scalar : set.scalars) parts.push_back(formulas.Not(scalar));
  const auto leave_out = [&](Atom::Kind kind, unsigned type, const std::vector<NodeId>& values, NodeId spellings) {
    if (values.empty()) return;
    const bool is_open = is_spelled || HasShape(formula, type, [](NodeId text) { return text == kAnyText; });
    const NodeId others = pool.Not(pool.Alternate(values));
    parts.push_back(formulas.AtomOf({.kind = kind, .node = is_open ? pool.And({spellings, others}) : others}));
  };
  leave_out(Atom::kString, kStringType, set.texts, values_.strict_text().AnyText());
  leave_out(Atom::kNumber, kNumberType, set.numbers, values_.numbers().Plain());
  return formulas.And(std::move(parts));
}

// If the formula has only spellings that are compared, its states away from the seen values are not changed.
FormulaId SeenValues::WithoutScalars(FormulaId formula, SeenSet number) {
  const Set& set = sets_[number];
  const FormulaId result = Restricted(formula, set, false);
  // Excluding the seen values may remove the part of the formula that restricts the spelling of a value.
  const auto takes = [&](std::string_view foreign) {
    return [&, foreign](NodeId text) { return text != kAnyText && values_.pool().Matches(text, foreign); };
  };
  const bool is_foreign = (!set.texts.empty() && HasShape(result, kStringType, takes("\""))) ||
                          (!set.numbers.empty() && HasShape(result, kNumberType, takes("z")));
  return is_foreign ? Restricted(formula, set, true) : result;
}

NodeId SeenValues::WithoutKeys(NodeId keys, SeenSet set) {
  RegexPool& pool = values_.pool();
  return set == 0 ? keys : pool.And({keys, pool.Not(pool.Alternate(sets_[set].texts))});
}

namespace {

// A value in the place being compared, and the rest of the array or object.
struct Head {
  JsonValue value, rest;
};

std::vector<Difference> DifferencesFrom(SeenValues& seen, ValueFormulas& values, FormulaId formula,
                                        const std::vector<Head>& heads) {
  if (heads.empty()) return {{formula, 0, 0, {}}};
  std::map<std::string, std::vector<const Head*>> groups;
  for (const Head& head : heads) groups[CanonicalKey(head.value)].push_back(&head);
  std::vector<Difference> result;
  SeenSet all = 0;
  for (const auto& [key, group] : groups) {
    const JsonValue& value = group[0]->value;
    all = seen.With(all, value);
    SeenSet rests = 0;
    for (const Head* head : group) rests = seen.With(rests, head->rest);
    // In any order that `formula` allows.
    result.push_back({values.formulas().And({formula, values.Exactly(value, true)}), 0, rests, value});
  }
  const SeenSet compounds = seen.Of(std::vector<JsonValue>(seen.Compounds(all)));
  result.push_back({seen.WithoutScalars(formula, all), compounds, 0, {}});
  return result;
}

}  // namespace

std::vector<Difference> ItemDifferences(SeenValues& seen, ValueFormulas& values, FormulaId item, SeenSet excluded) {
  std::vector<Head> heads;
  for (const JsonValue& value : seen.Compounds(excluded)) {
    if (value.items.empty()) continue;
    Head& head = heads.emplace_back(Head{value.items[0], value});
    head.rest.items.erase(head.rest.items.begin());
  }
  return DifferencesFrom(seen, values, item, heads);
}

std::vector<Difference> MemberDifferences(SeenValues& seen, ValueFormulas& values, FormulaId member, SeenSet excluded,
                                          const std::string& key) {
  std::vector<Head> heads;
  for (const JsonValue& value : seen.Compounds(excluded))
    if (const JsonValue* found = value.Find(key)) {
      Head& head = heads.emplace_back(Head{*found, value});
      head.rest.Erase(key);
    }
  return DifferencesFrom(seen, values, member, heads);
}

std::vector<std::string> ExcludedKeys(const SeenValues& seen, SeenSet excluded) {
  std::vector<std::string> keys;
  for (const JsonValue& value : seen.Compounds(excluded))
    for (const auto& [key, member] : value.members) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace onpolicy::grammar
