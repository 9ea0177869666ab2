// A schema is the conjunction of what its references and keywords say.
#include "json-schema/compile.h"

#include <algorithm>

#include "base/scoped-value.h"
#include "json-schema/keywords.h"
#include "json-schema/site.h"

namespace onpolicy::grammar {

static constexpr std::ptrdiff_t kMaxPointer = 800;  // steps
static constexpr size_t kMaxWarnings = 200;

SchemaCompiler::SchemaCompiler(RegexPool& pool, JsonValue root, const SchemaOptions& options)
    : document_(std::move(root)), options_(options), values_(pool) {}

FormulaId SchemaCompiler::Compile() {
  const Place root = document_.RootPlace();
  any_order_ = options_.any_order || SchemaSite(*this, root).any_order();
  const FormulaId formula = Schema(root);
  // References compile as they are found; more may be found on the way.
  for (size_t i = 0; i < targets_.size(); i++) {
    const Place place = targets_[i].place;
    const FormulaId target = Schema(place);
    targets_[i].formula = target;
  }
  return formula;
}

FormulaId SchemaCompiler::Schema(const Place& given) {
  const JsonValue& schema = *given.schema;
  if (schema.type == JsonValue::kTrue) return kTrueFormula;
  if (schema.type == JsonValue::kFalse) return kFalseFormula;
  if (!schema.IsObject()) Malformed(given.pointer, "a schema must be an object or a boolean");
  if (std::count(given.pointer.begin(), given.pointer.end(), '/') > kMaxPointer)
    Malformed(given.pointer, "nested too deeply");
  const Place place = document_.Entered(given);
  WarnOfOthers(place);
  SchemaSite site(*this, place);
  site.parts() = References(place);
  if (document_.IgnoresSiblings(schema)) return site.parts()[0];
  if (document_.has_unevaluated()) formulas().KeepAlternatives();
  ReadKeywords(site);
  const FormulaId formula = formulas().And(std::move(site.parts()));
  if (formula > kTrueFormula) formulas().Note(formula, "#" + place.pointer);
  return WithUnevaluated(place, formula);
}

std::vector<FormulaId> SchemaCompiler::References(const Place& place) {
  std::vector<FormulaId> parts;
  for (const char* keyword : {"$ref", "$dynamicRef", "$recursiveRef"}) {
    const JsonValue* reference = place.schema->Find(keyword);
    if (!reference) continue;
    Place target = document_.Target(place, keyword, *reference, place.pointer + "/" + keyword);
    const auto [it, is_new] =
        target_of_.emplace(std::make_pair(target.schema, target.scope), static_cast<uint32_t>(targets_.size()));
    if (is_new) targets_.push_back({std::move(target)});
    parts.push_back(formulas().Reference(it->second));
  }
  return parts;
}

FormulaId SchemaCompiler::WithUnevaluated(const Place& place, FormulaId formula) {
  SchemaSite site(*this, place);
  const bool has_members = site.Find("unevaluatedProperties"), has_items = site.Find("unevaluatedItems");
  if (!has_members && !has_items) return formula;
  const FormulaId members = site.Schema("unevaluatedProperties"), items = site.Schema("unevaluatedItems");
  return formulas().Unevaluated(formula, has_members ? &members : nullptr, has_items ? &items : nullptr);
}

void SchemaCompiler::WarnOfOthers(const Place& place) {
  for (const auto& [key, value] : place.schema->members) {
    if (FindKeyword(key) || warnings_.size() >= kMaxWarnings) continue;
    warnings_.push_back("#" + place.pointer + "/" + EscapePointer(key) + ": '" + key + "' does not restrict values");
  }
}

}  // namespace onpolicy::grammar
