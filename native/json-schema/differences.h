// Values that must differ from given arrays and objects: at each item or member either the difference is made, or what
// comes later must make it. So a repeated value is closed off before its last difference is gone, not at its end.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "json-schema/seen-values.h"

namespace onpolicy::grammar {

// One way in which a member or item, and what comes after it, differs from excluded ones.
struct Difference {
  FormulaId formula;
  SeenSet value = 0;               // what the value itself must differ from
  SeenSet rest = 0;                // what is to come must differ from
  std::optional<JsonValue> known;  // the only value of `formula`
};

// For the first item, where the array must be none of `excluded`.
std::vector<Difference> ItemDifferences(SeenValues& seen, ValueFormulas& values, FormulaId item, SeenSet excluded);
// For the member of a key, where the object must be none of `excluded`.
std::vector<Difference> MemberDifferences(SeenValues& seen, ValueFormulas& values, FormulaId member, SeenSet excluded,
                                          const std::string& key);
// The keys of excluded objects.
std::vector<std::string> ExcludedKeys(const SeenValues& seen, SeenSet excluded);

}  // namespace onpolicy::grammar
