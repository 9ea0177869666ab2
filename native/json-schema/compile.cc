// From the root down: where schemas stand, and what each says as a conjunction.
#include "json-schema/compile.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/spec-error.h"

namespace onpolicy::grammar {

static constexpr int kMaxDepth = 400;

SchemaCompiler::SchemaCompiler(RegexPool& pool, JsonValue root, const SchemaOptions& options)
    : pool_(pool), root_(std::move(root)), options_(options), numbers_(pool),
      strict_text_(pool, TextForm::kJson), free_text_(pool, TextForm::kJsonAnyway) {}

void SchemaCompiler::Malformed(const std::string& pointer, const std::string& what) {
  throw SpecError("INVALID_REQUEST", pointer.empty() ? "#" : "#" + pointer, what);
}
void SchemaCompiler::Unsupported(const std::string& pointer, const std::string& what) {
  throw SpecError("UNSUPPORTED", pointer.empty() ? "#" : "#" + pointer, what);
}

FormulaId SchemaCompiler::Compile() {
  if (const JsonValue* schema = root_.Find("$schema"); schema && schema->IsString()) {
    const std::pair<const char*, int> drafts[] = {{"draft-04", 4}, {"draft-06", 6}, {"draft-07", 7}, {"2019-09", 2019}, {"2020-12", 2020}};
    for (const auto& [name, number] : drafts)
      if (schema->text.find(name) != std::string::npos) draft_ = number;
  }
  const JsonValue* order = root_.Find("x-property-order");
  any_order_ = options_.any_order || (order && order->IsString() && order->text == "any");
  const Place root{&root_, "", ""};
  resources_.emplace("", root);
  Index(root, 0);
  const FormulaId formula = Schema(places_.at(&root_));
  // References compile as they are found; more may be found on the way.
  for (size_t i = 0; i < targets_.size(); i++) {
    if (targets_[i].compiled) continue;
    targets_[i].compiled = true;
    const Place place = targets_[i].place;
    const FormulaId target = Schema(place);
    targets_[i].formula = target;
  }
  return formula;
}

SchemaCompiler::Place SchemaCompiler::Below(const Place& place, const std::string& step, const JsonValue& schema) const {
  const auto it = places_.find(&schema);
  Place below = it != places_.end() ? it->second : Place{&schema, place.base, place.pointer + "/" + step};
  below.scope = place.scope;
  return below;
}

// Finds identifiers and anchors, and the base URI of every subschema.
void SchemaCompiler::Index(const Place& given, int depth) {
  Place place = given;
  const JsonValue& schema = *place.schema;
  if (depth > kMaxDepth) Malformed(place.pointer, "nested too deeply");
  if (!schema.IsObject()) {
    places_.emplace(&schema, place);
    return;
  }
  const bool siblings_ignored = draft_ != 0 && draft_ <= 7 && schema.Find("$ref");
  const JsonValue* id = schema.Find(draft_ == 4 ? "id" : "$id");
  if (id && id->IsString() && !siblings_ignored) {
    const std::string uri = ResolveUri(place.base, id->text);
    if (!id->text.empty() && id->text[0] == '#') {
      resources_.emplace(uri, place);
    } else {
      place.base = uri.substr(0, uri.find('#'));
      resources_.emplace(place.base, place);
    }
  }
  Anchors(place);
  places_.emplace(&schema, place);
  static const std::set<std::string, std::less<>> single{
      "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
      "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"};
  static const std::set<std::string, std::less<>> lists{"allOf", "anyOf", "oneOf", "prefixItems", "items"};
  static const std::set<std::string, std::less<>> maps{"$defs", "definitions", "dependencies", "dependentSchemas",
                                                       "patternProperties", "properties"};
  if (schema.Find("unevaluatedItems") || schema.Find("unevaluatedProperties")) formulas_.KeepAlternatives();
  for (const auto& [key, value] : schema.members) {
    const std::string below = place.pointer + "/" + EscapePointer(key);
    if (single.contains(key) && (value.IsObject() || value.IsBool())) Index({&value, place.base, below}, depth + 1);
    if (lists.contains(key) && value.IsArray())
      for (size_t i = 0; i < value.items.size(); i++)
        Index({&value.items[i], place.base, below + "/" + std::to_string(i)}, depth + 1);
    if (maps.contains(key) && value.IsObject())
      for (const auto& [name, member] : value.members)
        if (member.IsObject() || member.IsBool())
          Index({&member, place.base, below + "/" + EscapePointer(name)}, depth + 1);
  }
}

FormulaId SchemaCompiler::Schema(const Place& place) {
  const JsonValue& schema = *place.schema;
  if (schema.type == JsonValue::kTrue) return kTrueFormula;
  if (schema.type == JsonValue::kFalse) return kFalseFormula;
  if (!schema.IsObject()) Malformed(place.pointer, "a schema must be an object or a boolean");
  if (std::count(place.pointer.begin(), place.pointer.end(), '/') > 2 * kMaxDepth)
    Malformed(place.pointer, "nested too deeply");
  return Object(place);
}

FormulaId SchemaCompiler::Object(const Place& given) {
  const Place place = Entered(given);
  const JsonValue& schema = *place.schema;
  CheckKeywords(place);
  std::vector<FormulaId> parts;
  References(place, &parts);
  if (draft_ != 0 && draft_ <= 7 && schema.Find("$ref")) return parts[0];
  if (const JsonValue* type = schema.Find("type")) {
    const std::string pointer = place.pointer + "/type";
    std::vector<JsonValue> single;
    if (type->IsString()) single.push_back(*type);
    const std::vector<JsonValue>& names = type->IsArray() ? type->items : single;
    if (names.empty()) Malformed(pointer, "must be a type name or a non-empty list of them");
    unsigned mask = 0;
    bool integer = false;
    for (const JsonValue& name : names) {
      const std::pair<const char*, unsigned> known[] = {{"null", kNullType}, {"boolean", kBoolType}, {"number", kNumberType},
                                                        {"string", kStringType}, {"array", kArrayType}, {"object", kObjectType}};
      bool matched = name.IsString() && name.text == "integer";
      integer = integer || matched;
      for (const auto& [text, bit] : known)
        if (name.IsString() && name.text == text) {
          mask |= bit;
          matched = true;
        }
      if (!matched) Malformed(pointer, "unknown type" + (name.IsString() ? " '" + name.text + "'" : std::string()));
    }
    if (integer && !(mask & kNumberType)) {
      mask |= kNumberType;
      parts.push_back(NumberAtom(numbers_.Integer(), numbers_.NotInteger()));
    }
    parts.push_back(formulas_.Types(mask));
  }
  if (const JsonValue* values = schema.Find("enum")) {
    if (!values->IsArray() || values->items.empty()) Malformed(place.pointer + "/enum", "must be a non-empty list");
    parts.push_back(Enumerated(values->items));
  }
  if (const JsonValue* value = schema.Find("const"); value && draft_ != 4) parts.push_back(Value(*value));
  Numbers(place, &parts);
  Strings(place, &parts);
  Objects(place, &parts);
  Arrays(place, &parts);
  Combinators(place, &parts);
  FormulaId formula = formulas_.And(std::move(parts));
  if (formula > kTrueFormula) formulas_.Note(formula, "#" + place.pointer);
  const JsonValue* members = draft_ == 0 || draft_ >= 2019 ? schema.Find("unevaluatedProperties") : nullptr;
  const JsonValue* items = draft_ == 0 || draft_ >= 2019 ? schema.Find("unevaluatedItems") : nullptr;
  if (members || items) {
    FormulaId member_formula = kTrueFormula, item_formula = kTrueFormula;
    if (members) member_formula = Schema(Below(place, "unevaluatedProperties", *members));
    if (items) item_formula = Schema(Below(place, "unevaluatedItems", *items));
    formula = formulas_.Unevaluated(formula, members ? &member_formula : nullptr, items ? &item_formula : nullptr);
  }
  return formula;
}

void SchemaCompiler::CheckKeywords(const Place& place) {
  static const std::set<std::string, std::less<>> known{
      "$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef",
      "$ref", "$schema", "$vocabulary", "additionalItems", "additionalProperties", "allOf", "anyOf", "const",
      "contains", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "else", "enum",
      "exclusiveMaximum", "exclusiveMinimum", "format", "id", "if", "items", "maxContains", "maximum", "maxItems",
      "maxLength", "maxProperties", "minContains", "minimum", "minItems", "minLength", "minProperties", "multipleOf",
      "not", "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "required", "then",
      "type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "x-property-order"};
  for (const auto& [key, value] : place.schema->members) {
    if (known.contains(key) || warnings_.size() >= 200) continue;
    warnings_.push_back("#" + place.pointer + "/" + EscapePointer(key) + ": '" + key + "' does not restrict values");
  }
}

}  // namespace onpolicy::grammar
