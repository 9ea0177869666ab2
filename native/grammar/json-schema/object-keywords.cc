// Keywords about members of objects: their values, required ones, their number, their names, and dependencies.
#include <algorithm>

#include "grammar/json-schema/compile.h"
#include "grammar/json-schema/keywords.h"

namespace onpolicy::grammar {
namespace {

using namespace meta;

void ReadMembers(SchemaSite& site) {
  CharEncoder& text = site.values().strict_text();
  RegexPool& pool = site.values().pool();
  const JsonValue* properties = site.FindObject("properties");
  const JsonValue* patterns = site.FindObject("patternProperties");
  const JsonValue* additional = site.Find("additionalProperties");
  const bool is_closed = site.options().disable_additional_properties && !additional;
  Atom atom{.kind = Atom::kMembers, .any_order = site.any_order()};
  std::vector<NodeId> named;
  if (properties)
    for (const auto& [key, value] : properties->members) {
      atom.properties.push_back({key, site.Schema("properties/" + EscapePointer(key), value)});
      named.push_back(text.Text(key));
    }
  if (patterns)
    for (const auto& [key, value] : patterns->members) {
      const std::string step = "patternProperties/" + EscapePointer(key);
      const NodeId node = site.Pattern(key, true, step);
      const FormulaId formula = site.Schema(step, value);
      named.push_back(node);
      // Patterns with the same schema become one pattern, because keys are distinguished by the patterns that they match.
      const auto same = std::find_if(atom.patterns.begin(), atom.patterns.end(), [&](const auto& entry) { return entry.second == formula; });
      if (same == atom.patterns.end()) {
        atom.patterns.push_back({node, formula});
      } else {
        same->first = pool.Alternate({same->first, node});
      }
    }
  if (additional) atom.rest = site.Schema("additionalProperties", *additional);
  if (is_closed) atom.rest = kFalseFormula;
  atom.has_rest = additional || is_closed;
  if (atom.rest != kTrueFormula) atom.other = pool.And({text.AnyText(), pool.Not(pool.Alternate(std::move(named)))});
  site.Add(std::move(atom));
}

void ReadRequired(SchemaSite& site) {
  const JsonValue& keys = *site.Find("required");
  // In draft 3, `required` was a flag.
  if (keys.IsBool() && site.draft() == 0) return;
  for (const std::string& key : site.Texts(keys, "required")) site.Add(site.formulas().Required(key));
}

void ReadMemberCount(SchemaSite& site) {
  const auto min = site.FindCount("minProperties"), max = site.FindCount("maxProperties");
  site.Add({.kind = Atom::kMemberCount, .min = min.value_or(0), .max = max.value_or(UINT64_MAX)});
}

// The allowed keys are known only when the schema is normalized: see ShapeTable.
void ReadNames(SchemaSite& site) { site.Add({.kind = Atom::kMemberNames, .formula = site.Schema("propertyNames")}); }

// Adds: not an object, or without the key, or with it and the formula that depends on it.
void AddDependent(SchemaSite& site, const std::string& key, FormulaId then) {
  FormulaTable& formulas = site.formulas();
  const FormulaId required = formulas.Required(key);
  site.Add(formulas.Or({formulas.Types(kAllTypes & ~kObjectType), formulas.Not(required), formulas.And({required, then})}));
}

void AddDependentKeys(SchemaSite& site, const std::string& key, const std::vector<std::string>& others) {
  std::vector<FormulaId> all;
  for (const std::string& other : others) all.push_back(site.formulas().Required(other));
  AddDependent(site, key, site.formulas().And(std::move(all)));
}

// The keyword's values are lists of keys, schemas, or (for `dependencies`) both and single keys.
void ReadDependent(SchemaSite& site, const char* keyword) {
  const bool is_mixed = std::string_view(keyword) == "dependencies", has_lists = std::string_view(keyword) == "dependentRequired";
  for (const auto& [key, value] : site.FindObject(keyword)->members) {
    const std::string step = keyword + ("/" + EscapePointer(key));
    if (is_mixed && value.IsString()) {
      AddDependentKeys(site, key, {value.text});
    } else if (has_lists || (is_mixed && value.IsArray())) {
      AddDependentKeys(site, key, site.Texts(value, step));
    } else {
      AddDependent(site, key, site.Schema(step, value));
    }
  }
}

void ReadDependentRequired(SchemaSite& site) { ReadDependent(site, "dependentRequired"); }
void ReadDependentSchemas(SchemaSite& site) { ReadDependent(site, "dependentSchemas"); }
void ReadDependencies(SchemaSite& site) { ReadDependent(site, "dependencies"); }

constexpr Keyword kObjectKeywords[] = {
    {"properties", kAllDrafts, kNamedSchemas, ReadMembers, Subschemas::kMap},
    {"patternProperties", kAllDrafts, kNamedSchemas, ReadMembers, Subschemas::kMap},
    {"additionalProperties", kDraft4, kSchemaOrBoolean, ReadMembers, Subschemas::kOne},
    {"additionalProperties", kFrom6, kSchema, ReadMembers, Subschemas::kOne},
    {"required", kAllDrafts, kNames, ReadRequired},
    {"minProperties", kAllDrafts, kCount, ReadMemberCount},
    {"maxProperties", kAllDrafts, kCount, ReadMemberCount},
    {"propertyNames", kFrom6, kSchema, ReadNames, Subschemas::kOne},
    {"dependentRequired", kFrom2019, R"({"type":"object","additionalProperties":{"$ref":"#/definitions/stringArray"}})",
     ReadDependentRequired},
    {"dependentSchemas", kFrom2019, kNamedSchemas, ReadDependentSchemas, Subschemas::kMap},
    {"dependencies", kAllDrafts,
     R"({"type":"object","additionalProperties":{"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/stringArray"}]}})",
     ReadDependencies, Subschemas::kMap},
};

}  // namespace

std::span<const Keyword> ObjectKeywords() { return kObjectKeywords; }

}  // namespace onpolicy::grammar
