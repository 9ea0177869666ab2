// The value equals one that an excluded array or object has in this place, and the rest must differ from what follows
// there; or it equals none.
#include "json-schema/seen-values.h"

#include <algorithm>
#include <map>

namespace onpolicy::grammar {
namespace {

// A value in the place in question, and the array or object without it.
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
    result.push_back({values.formulas().And({formula, values.Exactly(value)}), 0, rests, value});
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
      std::erase_if(head.rest.members, [&](const auto& entry) { return entry.first == key; });
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
