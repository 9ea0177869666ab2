// allOf, anyOf, oneOf, not, if.
#include <string_view>
#include <unordered_set>

#include "base/scoped-value.h"
#include "grammar/json-schema/compile.h"
#include "grammar/json-schema/keywords.h"

namespace onpolicy::grammar {
namespace {

using namespace meta;

template <typename Join>
void ReadList(SchemaSite& site, const std::string& keyword, Join join) {
  const JsonValue& list = *site.Find(keyword);
  if (!list.IsArray() || list.items.empty()) site.Malformed(keyword, "must be a non-empty list of schemas");
  std::vector<FormulaId> formulas;
  for (size_t i = 0; i < list.items.size(); i++)
    formulas.push_back(site.Schema(keyword + "/" + std::to_string(i), list.items[i]));
  site.Add(join(std::move(formulas)));
  site.formulas().Note(site.parts().back(), site.Pointer(keyword));
}

void ReadAllOf(SchemaSite& site) {
  ReadList(site, "allOf", [&](std::vector<FormulaId> parts) { return site.formulas().And(std::move(parts)); });
}

void ReadAnyOf(SchemaSite& site) {
  ReadList(site, "anyOf", [&](std::vector<FormulaId> parts) { return site.formulas().Or(std::move(parts)); });
}

// Returns true if each branch allows one text at most, and no two the same: then no value satisfies two of them.
bool AreDifferentTexts(SchemaSite& site, const JsonValue& branches) {
  std::unordered_set<std::string_view> texts;
  for (const JsonValue& branch : branches.items) {
    const bool reads_const = branch.IsObject() && site.draft() != kDraft4 && !branch.Find("$ref");  // old drafts ignore what is beside $ref
    const JsonValue* text = reads_const ? branch.Find("const") : nullptr;
    if (!text || !text->IsString() || !texts.insert(text->text).second) return false;
  }
  return true;
}

void ReadOneOf(SchemaSite& site) {
  const bool are_disjoint = AreDifferentTexts(site, *site.Find("oneOf"));
  ReadList(site, "oneOf", [&](std::vector<FormulaId> parts) {
    return are_disjoint ? site.formulas().Or(std::move(parts)) : site.formulas().OneOf(parts);
  });
}

void ReadNot(SchemaSite& site) {
  const ScopedValue<bool> negated(site.is_negated(), !site.is_negated());
  site.Add(site.formulas().Not(site.Schema("not")));
}

void ReadIf(SchemaSite& site) {
  if (!site.Find("if")) return;
  FormulaTable& formulas = site.formulas();
  const FormulaId test = site.Schema("if"), then_formula = site.Schema("then"), else_formula = site.Schema("else");
  site.Add(formulas.Or({formulas.And({test, then_formula}), formulas.And({formulas.Not(test), else_formula})}));
}

constexpr Keyword kLogicKeywords[] = {
    {"allOf", kAllDrafts, kSchemas, ReadAllOf, Subschemas::kList},
    {"anyOf", kAllDrafts, kSchemas, ReadAnyOf, Subschemas::kList},
    {"oneOf", kAllDrafts, kSchemas, ReadOneOf, Subschemas::kList},
    {"not", kAllDrafts, kSchema, ReadNot, Subschemas::kOne},
    {"if", kFrom7, kSchema, ReadIf, Subschemas::kOne},
    {"then", kFrom7, kSchema, ReadIf, Subschemas::kOne},
    {"else", kFrom7, kSchema, ReadIf, Subschemas::kOne},
};

}  // namespace

std::span<const Keyword> LogicKeywords() { return kLogicKeywords; }

}  // namespace onpolicy::grammar
