// Keywords about items of arrays: their values by place, their number, whether they differ, and demands on some of them.
#include "grammar/json-schema/compile.h"
#include "grammar/json-schema/keywords.h"

namespace onpolicy::grammar {
namespace {

using namespace meta;

void ReadItems(SchemaSite& site) {
  const JsonValue* items = site.Find("items");
  const JsonValue* prefix = site.Find("prefixItems");
  std::string prefix_name = "prefixItems", rest_name = "items";
  if (items && items->IsArray()) {
    if (site.draft() == kDraft2020) site.Malformed("items", "must be a schema");
    prefix = items;
    items = site.Find("additionalItems");
    prefix_name = "items";
    rest_name = "additionalItems";
  }
  if (!prefix && !items) return;
  if (prefix && !prefix->IsArray()) site.Malformed(prefix_name, "must be a list of schemas");
  Atom atom{.kind = Atom::kItems, .has_rest = items != nullptr};
  for (size_t i = 0; prefix && i < prefix->items.size(); i++)
    atom.prefix.push_back(site.Schema(prefix_name + "/" + std::to_string(i), prefix->items[i]));
  if (items) atom.rest = site.Schema(rest_name, *items);
  site.Add(std::move(atom));
}

void ReadItemCount(SchemaSite& site) {
  const auto min = site.FindCount("minItems"), max = site.FindCount("maxItems");
  site.Add({.kind = Atom::kItemCount, .min = min.value_or(0), .max = max.value_or(UINT64_MAX)});
}

void ReadUnique(SchemaSite& site) {
  const JsonValue& unique = *site.Find("uniqueItems");
  if (!unique.IsBool()) site.Malformed("uniqueItems", "must be a boolean");
  if (unique.type == JsonValue::kFalse) return;
  if (site.is_negated()) site.Unsupported("uniqueItems", "uniqueItems cannot be enforced under a negation");
  site.Add({.kind = Atom::kUnique});
}

void ReadContains(SchemaSite& site) {
  const JsonValue* contains = site.Find("contains");
  if (!contains) return;
  const auto min = site.FindCount("minContains"), max = site.FindCount("maxContains");
  Atom atom{.kind = Atom::kSomeItems, .min = min.value_or(1), .max = max.value_or(UINT64_MAX)};
  atom.formula = site.Schema("contains", *contains);
  atom.counts_evaluation = site.draft() != kDraft2019;
  site.Add(std::move(atom));
}

constexpr Keyword kArrayKeywords[] = {
    {"prefixItems", kDraft2020, kSchemas, ReadItems, Subschemas::kList},
    {"items", kAllDrafts & ~kDraft2020, kOneOrMoreSchemas, ReadItems, Subschemas::kOneOrList},
    {"items", kDraft2020, kSchema, ReadItems, Subschemas::kOneOrList},
    {"additionalItems", kDraft4, kSchemaOrBoolean, ReadItems, Subschemas::kOne},
    {"additionalItems", kDraft6 | kDraft7 | kDraft2019, kSchema, ReadItems, Subschemas::kOne},
    {"minItems", kAllDrafts, kCount, ReadItemCount},
    {"maxItems", kAllDrafts, kCount, ReadItemCount},
    {"uniqueItems", kAllDrafts, kBoolean, ReadUnique},
    {"contains", kFrom6, kSchema, ReadContains, Subschemas::kOne},
    {"minContains", kFrom2019, kCount, ReadContains},
    {"maxContains", kFrom2019, kCount, ReadContains},
};

}  // namespace

std::span<const Keyword> ArrayKeywords() { return kArrayKeywords; }

}  // namespace onpolicy::grammar
