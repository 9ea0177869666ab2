// The keywords, one function per group of them.
#include "base/scoped-value.h"
#include "base/spec-error.h"
#include "json-schema/compile.h"
#include "json-schema/format.h"
#include "regex/parse.h"

namespace onpolicy::grammar {

void SchemaCompiler::Numbers(const Place& place, std::vector<FormulaId>* parts) {
  const JsonValue& schema = *place.schema;
  const auto bound = [&](const char* keyword, const char* exclusive, unsigned side) {
    const JsonValue* limit = schema.Find(keyword);
    const JsonValue* strict = schema.Find(exclusive);
    unsigned relations = side | kEqual;
    if (strict && strict->IsBool() && draft_ <= 4) {
      if (strict->type == JsonValue::kTrue) relations = side;
      strict = nullptr;
    }
    if (limit) {
      const Decimal value = Number(*limit, place.pointer + "/" + keyword);
      parts->push_back(NumberAtom(numbers_.Ordered(value, relations), numbers_.Ordered(value, ~relations & 7)));
    }
    if (strict) {
      const Decimal value = Number(*strict, place.pointer + "/" + exclusive);
      parts->push_back(NumberAtom(numbers_.Ordered(value, side), numbers_.Ordered(value, ~side & 7)));
    }
  };
  bound("minimum", "exclusiveMinimum", kGreater);
  bound("maximum", "exclusiveMaximum", kLess);
  if (const JsonValue* step = schema.Find("multipleOf")) {
    const std::string pointer = place.pointer + "/multipleOf";
    const Decimal value = Number(*step, pointer);
    if (value.negative || value.IsZero()) Malformed(pointer, "must be greater than zero");
    NodeId node, other;
    if (!numbers_.Multiple(value, false, &node) || !numbers_.Multiple(value, true, &other))
      Unsupported(pointer, "multipleOf " + step->text + " is too fine or too large to enforce");
    parts->push_back(NumberAtom(node, other));
  }
}

NodeId SchemaCompiler::Pattern(const std::string& text, bool search, const std::string& pointer) {
  RegexOptions options;
  options.search = search;
  options.allow_lookahead = true;
  ParseError error;
  const NodeId node = ParseRegex(text, options, strict_text_, &error);
  if (!error.ok()) {
    const std::string what = "pattern: " + error.message + " at offset " + std::to_string(error.position);
    if (error.unsupported) Unsupported(pointer, what);
    Malformed(pointer, what);
  }
  return node;
}

void SchemaCompiler::Strings(const Place& place, std::vector<FormulaId>* parts) {
  const JsonValue& schema = *place.schema;
  const JsonValue* min = schema.Find("minLength");
  const JsonValue* max = schema.Find("maxLength");
  if (min || max) {
    const uint64_t low = min ? Count(*min, place.pointer + "/minLength") : 0;
    const uint64_t high = max ? Count(*max, place.pointer + "/maxLength") : kUnlimited;
    const auto repeat = [&](uint64_t from, uint64_t to) {
      return from > to ? kNothing
                       : pool_.Repeat(free_text_.Any(), static_cast<uint32_t>(from), static_cast<uint32_t>(to));
    };
    std::vector<NodeId> outside;
    if (low > 0) outside.push_back(repeat(0, low - 1));
    if (high != kUnlimited) outside.push_back(repeat(high + 1, kUnlimited));
    parts->push_back(StringAtom(repeat(low, high), pool_.Alternate(std::move(outside))));
  }
  const auto restrict_to = [&](NodeId node) {
    parts->push_back(StringAtom(node, pool_.And({strict_text_.AnyText(), pool_.Not(node)})));
  };
  if (const JsonValue* pattern = schema.Find("pattern")) {
    if (!pattern->IsString()) Malformed(place.pointer + "/pattern", "must be a string");
    restrict_to(Pattern(pattern->text, true, place.pointer + "/pattern"));
  }
  if (const JsonValue* format = schema.Find("format")) {
    const std::string pointer = place.pointer + "/format";
    if (!format->IsString()) Malformed(pointer, "must be a string");
    if (const char* pattern = FormatPattern(format->text)) {
      restrict_to(Pattern(pattern, false, pointer));
    } else if (options_.refuse_unknown) {
      Unsupported(pointer, "unknown format '" + format->text + "'");
    } else {
      warnings_.push_back("#" + pointer + ": unknown format '" + format->text + "' is not enforced");
    }
  }
}

void SchemaCompiler::Objects(const Place& place, std::vector<FormulaId>* parts) {
  const JsonValue& schema = *place.schema;
  const auto map_of = [&](const char* keyword) -> const JsonValue* {
    const JsonValue* value = schema.Find(keyword);
    if (value && !value->IsObject()) Malformed(place.pointer + "/" + keyword, "must be an object");
    return value;
  };
  const JsonValue* properties = map_of("properties");
  const JsonValue* patterns = map_of("patternProperties");
  const JsonValue* additional = schema.Find("additionalProperties");
  const bool closed = options_.disable_additional_properties && !additional && (properties || patterns);
  if (properties || patterns || additional) {
    Atom atom;
    atom.kind = Atom::kMembers;
    const JsonValue* order = schema.Find("x-property-order");
    atom.any_order = any_order_ || (order && order->IsString() && order->text == "any");
    std::vector<NodeId> named;
    if (properties)
      for (const auto& [key, value] : properties->members) {
        atom.properties.push_back({key, Schema(Below(place, "properties/" + EscapePointer(key), value))});
        named.push_back(strict_text_.Text(key));
      }
    if (patterns)
      for (const auto& [key, value] : patterns->members) {
        const std::string pointer = place.pointer + "/patternProperties/" + EscapePointer(key);
        const NodeId node = Pattern(key, true, pointer);
        atom.patterns.push_back({node, Schema(Below(place, "patternProperties/" + EscapePointer(key), value))});
        named.push_back(node);
      }
    if (additional) atom.rest = Schema(Below(place, "additionalProperties", *additional));
    if (closed) atom.rest = kFalseFormula;
    atom.has_rest = additional || closed;
    if (atom.rest != kTrueFormula)
      atom.other = pool_.And({strict_text_.AnyText(), pool_.Not(pool_.Alternate(std::move(named)))});
    parts->push_back(formulas_.AtomOf(std::move(atom)));
  }
  const auto required = [&](const std::string& key) {
    Atom atom;
    atom.kind = Atom::kRequired;
    atom.key = key;
    return formulas_.AtomOf(std::move(atom));
  };
  if (const JsonValue* keys = schema.Find("required"); keys && !(keys->IsBool() && draft_ == 0)) {
    if (!keys->IsArray()) Malformed(place.pointer + "/required", "must be a list of strings");
    for (const JsonValue& key : keys->items) {
      if (!key.IsString()) Malformed(place.pointer + "/required", "must be a list of strings");
      parts->push_back(required(key.text));
    }
  }
  const JsonValue* min = schema.Find("minProperties");
  const JsonValue* max = schema.Find("maxProperties");
  if (min || max)
    parts->push_back(CountAtom(Atom::kMemberCount, min ? Count(*min, place.pointer + "/minProperties") : 0,
                               max ? Count(*max, place.pointer + "/maxProperties") : UINT64_MAX));
  if (const JsonValue* names = schema.Find("propertyNames"); names && draft_ != 4) {
    // Keys that pass are found by normalising the schema over strings; see ShapeTable.
    Atom atom;
    atom.kind = Atom::kMemberNames;
    atom.formula = Schema(Below(place, "propertyNames", *names));
    parts->push_back(formulas_.AtomOf(std::move(atom)));
  }
  // No object, or without the key, or with it and what it brings along.
  const auto dependent = [&](const std::string& key, FormulaId then) {
    parts->push_back(formulas_.Or({formulas_.Types(kAllTypes & ~kObjectType), formulas_.Not(required(key)), then}));
  };
  const auto dependent_keys = [&](const std::string& key, const JsonValue& list, const std::string& pointer) {
    std::vector<FormulaId> all;
    if (!list.IsArray()) Malformed(pointer, "must be a list of strings");
    for (const JsonValue& name : list.items) {
      if (!name.IsString()) Malformed(pointer, "must be a list of strings");
      all.push_back(required(name.text));
    }
    dependent(key, formulas_.And({required(key), formulas_.And(std::move(all))}));
  };
  if (const JsonValue* lists = map_of("dependentRequired"); lists && (draft_ == 0 || draft_ >= 2019))
    for (const auto& [key, list] : lists->members)
      dependent_keys(key, list, place.pointer + "/dependentRequired/" + EscapePointer(key));
  if (const JsonValue* schemas = map_of("dependentSchemas"); schemas && (draft_ == 0 || draft_ >= 2019))
    for (const auto& [key, value] : schemas->members)
      dependent(key, formulas_.And({required(key), Schema(Below(place, "dependentSchemas/" + EscapePointer(key), value))}));
  if (const JsonValue* mixed = map_of("dependencies"))
    for (const auto& [key, value] : mixed->members) {
      const std::string step = "dependencies/" + EscapePointer(key);
      if (value.IsArray()) {
        dependent_keys(key, value, place.pointer + "/" + step);
      } else if (value.IsString()) {
        dependent(key, formulas_.And({required(key), required(value.text)}));
      } else {
        dependent(key, formulas_.And({required(key), Schema(Below(place, step, value))}));
      }
    }
}

void SchemaCompiler::Arrays(const Place& place, std::vector<FormulaId>* parts) {
  const JsonValue& schema = *place.schema;
  const JsonValue* items = schema.Find("items");
  const JsonValue* prefix = draft_ == 0 || draft_ == 2020 ? schema.Find("prefixItems") : nullptr;
  const JsonValue* additional = draft_ != 2020 ? schema.Find("additionalItems") : nullptr;
  std::string prefix_name = "prefixItems", rest_name = "items";
  if (items && items->IsArray()) {
    if (draft_ == 2020) Malformed(place.pointer + "/items", "must be a schema");
    prefix = items;
    items = additional;
    prefix_name = "items";
    rest_name = "additionalItems";
  }
  if (prefix && !prefix->IsArray()) Malformed(place.pointer + "/" + prefix_name, "must be a list of schemas");
  if (prefix || items) {
    Atom atom;
    atom.kind = Atom::kItems;
    if (prefix)
      for (size_t i = 0; i < prefix->items.size(); i++)
        atom.prefix.push_back(Schema(Below(place, prefix_name + "/" + std::to_string(i), prefix->items[i])));
    if (items) atom.rest = Schema(Below(place, rest_name, *items));
    atom.has_rest = items != nullptr;
    parts->push_back(formulas_.AtomOf(std::move(atom)));
  }
  const JsonValue* min = schema.Find("minItems");
  const JsonValue* max = schema.Find("maxItems");
  if (min || max)
    parts->push_back(CountAtom(Atom::kItemCount, min ? Count(*min, place.pointer + "/minItems") : 0,
                               max ? Count(*max, place.pointer + "/maxItems") : UINT64_MAX));
  if (const JsonValue* unique = schema.Find("uniqueItems")) {
    if (!unique->IsBool()) Malformed(place.pointer + "/uniqueItems", "must be a boolean");
    if (unique->type == JsonValue::kTrue) {
      if (is_negated_) Unsupported(place.pointer + "/uniqueItems", "uniqueItems cannot be enforced under a negation");
      Atom atom;
      atom.kind = Atom::kUnique;
      parts->push_back(formulas_.AtomOf(std::move(atom)));
    }
  }
  if (const JsonValue* contains = schema.Find("contains"); contains && draft_ != 4) {
    Atom atom;
    atom.kind = Atom::kSomeItems;
    atom.min = 1;
    if (draft_ == 0 || draft_ >= 2019) {
      if (const JsonValue* least = schema.Find("minContains")) atom.min = Count(*least, place.pointer + "/minContains");
      if (const JsonValue* most = schema.Find("maxContains")) atom.max = Count(*most, place.pointer + "/maxContains");
    }
    atom.formula = Schema(Below(place, "contains", *contains));
    atom.counts_evaluation = draft_ != 2019;
    parts->push_back(formulas_.AtomOf(std::move(atom)));
  }
}

void SchemaCompiler::Combinators(const Place& place, std::vector<FormulaId>* parts) {
  const JsonValue& schema = *place.schema;
  for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
    const JsonValue* list = schema.Find(keyword);
    if (!list) continue;
    const std::string pointer = place.pointer + "/" + keyword;
    if (!list->IsArray() || list->items.empty()) Malformed(pointer, "must be a non-empty list of schemas");
    std::vector<FormulaId> formulas;
    for (size_t i = 0; i < list->items.size(); i++)
      formulas.push_back(Schema(Below(place, std::string(keyword) + "/" + std::to_string(i), list->items[i])));
    parts->push_back(keyword[0] == 'o'   ? formulas_.OneOf(formulas)
                     : keyword[1] == 'n' ? formulas_.Or(std::move(formulas))
                                         : formulas_.And(std::move(formulas)));
    formulas_.Note(parts->back(), "#" + pointer);
  }
  if (const JsonValue* inner = schema.Find("not")) {
    const ScopedValue<bool> negated(is_negated_, !is_negated_);
    parts->push_back(formulas_.Not(Schema(Below(place, "not", *inner))));
  }
  if (const JsonValue* condition = schema.Find("if"); condition && draft_ != 4 && draft_ != 6) {
    const FormulaId test = Schema(Below(place, "if", *condition));
    const JsonValue* then_schema = schema.Find("then");
    const JsonValue* else_schema = schema.Find("else");
    const FormulaId then_formula = then_schema ? Schema(Below(place, "then", *then_schema)) : kTrueFormula;
    const FormulaId else_formula = else_schema ? Schema(Below(place, "else", *else_schema)) : kTrueFormula;
    parts->push_back(
        formulas_.Or({formulas_.And({test, then_formula}), formulas_.And({formulas_.Not(test), else_formula})}));
  }
}

}  // namespace onpolicy::grammar
