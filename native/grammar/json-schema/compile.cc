// Compiles a schema to the conjunction of its references and keywords.
#include "grammar/json-schema/compile.h"

#include <algorithm>

#include "base/scoped-value.h"
#include "base/spec-error.h"
#include "grammar/json-schema/keywords.h"
#include "grammar/regex/parse.h"

namespace onpolicy::grammar {

static constexpr std::ptrdiff_t kMaxPointer = 800;  // steps
static constexpr size_t kMaxWarnings = 200;

SchemaCompiler::SchemaCompiler(RegexPool& pool, JsonValue root, const SchemaOptions& options)
    : document_(std::move(root), options.schemas), options_(options), values_(pool) {}

FormulaId SchemaCompiler::Compile() {
  const Place root = document_.RootPlace();
  any_order_ = options_.any_order || SchemaSite(*this, root).any_order();
  const FormulaId formula = Schema(root);
  // References are compiled in the order in which they are found; compiling one may find more.
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
  ReadKeywords(schema, site);
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
    warnings_.push_back({"#" + place.pointer + "/" + EscapePointer(key) + ": '" + key + "' does not restrict values"});
  }
}

const JsonValue* SchemaSite::Find(std::string_view keyword) const {
  const JsonValue* value = place_.schema->Find(keyword);
  return value && (draft() == 0 || (FindKeyword(keyword)->drafts & draft())) ? value : nullptr;
}

const JsonValue* SchemaSite::FindObject(const std::string& keyword) const {
  const JsonValue* value = Find(keyword);
  if (value && !value->IsObject()) Malformed(keyword, "must be an object");
  return value;
}

std::optional<uint64_t> SchemaSite::FindCount(const std::string& keyword) const {
  const JsonValue* value = Find(keyword);
  if (!value) return std::nullopt;
  Decimal decimal;
  if (!value->IsNumber() || !ParseDecimal(value->text, &decimal) || !decimal.IsInteger() || decimal.negative)
    Malformed(keyword, "must be a non-negative integer");
  const std::string digits = decimal.IntegerDigits();
  return digits.size() > 9 ? 1000000000ull : std::stoull(digits);
}

std::optional<Decimal> SchemaSite::FindNumber(const std::string& keyword) const {
  const JsonValue* value = Find(keyword);
  if (!value) return std::nullopt;
  Decimal decimal;
  if (!value->IsNumber()) Malformed(keyword, "must be a number");
  if (!ParseDecimal(value->text, &decimal)) Unsupported(keyword, "an exponent beyond 400 is not supported");
  return decimal;
}

const std::string* SchemaSite::FindText(const std::string& keyword) const {
  const JsonValue* value = Find(keyword);
  if (value && !value->IsString()) Malformed(keyword, "must be a string");
  return value ? &value->text : nullptr;
}

std::vector<std::string> SchemaSite::Texts(const JsonValue& list, const std::string& step) const {
  std::vector<std::string> texts;
  for (const JsonValue& item : list.items) {
    if (!item.IsString()) Malformed(step, "must be a list of strings");
    texts.push_back(item.text);
  }
  if (!list.IsArray()) Malformed(step, "must be a list of strings");
  return texts;
}

FormulaId SchemaSite::Schema(const std::string& step, const JsonValue& schema) {
  return compiler_.Schema(compiler_.document().Below(place_, step, schema));
}

FormulaId SchemaSite::Schema(const char* keyword) {
  const JsonValue* schema = Find(keyword);
  return schema ? Schema(keyword, *schema) : kTrueFormula;
}

NodeId SchemaSite::Pattern(const std::string& text, bool search, const std::string& step) {
  try {
    return ParseRegex(text, {.search = search, .allow_lookahead = true}, values().strict_text());
  } catch (const ParseError& error) {
    throw SpecError(error.code(), Pointer(step), "pattern: " + error.message + " at offset " + std::to_string(error.position), error.position);
  }
}

bool SchemaSite::any_order() const {
  const JsonValue* order = place_.schema->Find("x-property-order");
  return compiler_.any_order() || (order && order->IsString() && order->text == "any");
}

}  // namespace onpolicy::grammar
