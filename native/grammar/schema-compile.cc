// The keywords, one function per group of them.
#include "grammar/schema-compile.h"

#include <algorithm>
#include <array>
#include <set>

#include "grammar/regex-parse.h"
#include "grammar/schema-error.h"
#include "grammar/schema-format.h"

namespace onpolicy::grammar {

static constexpr int kMaxDepth = 400;

SchemaCompiler::SchemaCompiler(RegexPool& pool, JsonValue root, const SchemaOptions& options)
    : pool_(pool), root_(std::move(root)), options_(options), numbers_(pool),
      strict_text_(pool, TextForm::kJson), free_text_(pool, TextForm::kJsonAnyway) {}

void SchemaCompiler::Malformed(const std::string& pointer, const std::string& what) {
  throw SchemaError("INVALID_REQUEST", pointer.empty() ? "#" : "#" + pointer, what);
}
void SchemaCompiler::Unsupported(const std::string& pointer, const std::string& what) {
  throw SchemaError("UNSUPPORTED", pointer.empty() ? "#" : "#" + pointer, what);
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
  auto it = places_.find(&schema);
  if (it != places_.end()) return it->second;
  return {&schema, place.base, place.pointer + "/" + step};
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
  for (const char* keyword : {"$anchor", "$dynamicAnchor"})
    if (const JsonValue* anchor = schema.Find(keyword); anchor && anchor->IsString()) {
      resources_.emplace(place.base + "#" + anchor->text, place);
      if (keyword[1] == 'd') dynamic_anchors_[anchor->text]++;
    }
  if (const JsonValue* anchor = schema.Find("$recursiveAnchor"); anchor && anchor->type == JsonValue::kTrue)
    dynamic_anchors_["$recursive"]++;
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

FormulaId SchemaCompiler::Resolve(const Place& from, const std::string& reference, const std::string& pointer) {
  const std::string uri = ResolveUri(from.base, reference);
  const size_t hash = uri.find('#');
  const std::string base = uri.substr(0, hash);
  std::string fragment = hash == std::string::npos ? "" : uri.substr(hash + 1);
  // Percent-decoding of the fragment.
  std::string decoded;
  for (size_t i = 0; i < fragment.size(); i++) {
    if (fragment[i] == '%' && i + 2 < fragment.size()) {
      decoded.push_back(static_cast<char>(std::stoi("0" + fragment.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      decoded.push_back(fragment[i]);
    }
  }
  auto found = resources_.find(base);
  Place place;
  if (!decoded.empty() && decoded[0] != '/') {
    found = resources_.find(base + "#" + decoded);
    if (found == resources_.end()) Unsupported(pointer, "reference '" + reference + "' leads nowhere in this document");
    place = found->second;
  } else {
    if (found == resources_.end())
      Unsupported(pointer, "reference '" + reference + "' leads out of this document, which is not supported");
    place = found->second;
    for (size_t at = 0; at < decoded.size();) {
      size_t end = decoded.find('/', at + 1);
      if (end == std::string::npos) end = decoded.size();
      std::string step;
      for (size_t i = at + 1; i < end; i++) {
        if (decoded[i] == '~' && i + 1 < end) {
          step.push_back(decoded[++i] == '1' ? '/' : '~');
        } else {
          step.push_back(decoded[i]);
        }
      }
      const JsonValue* next = place.schema->Find(step);
      if (place.schema->IsArray() && !step.empty() && step.size() < 7 &&
          step.find_first_not_of("0123456789") == std::string::npos) {
        const size_t index = std::stoul(step);
        if (index < place.schema->items.size()) next = &place.schema->items[index];
      }
      if (!next) Malformed(pointer, "reference '" + reference + "' leads nowhere");
      auto known = places_.find(next);
      place = known != places_.end() ? known->second : Place{next, place.base, place.pointer + "/" + EscapePointer(step)};
      at = end;
    }
  }
  auto [it, is_new] = target_of_.emplace(place.schema, static_cast<uint32_t>(targets_.size()));
  if (is_new) targets_.push_back({place, kTrueFormula, false});
  return formulas_.Reference(it->second);
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

FormulaId SchemaCompiler::Object(const Place& place) {
  const JsonValue& schema = *place.schema;
  CheckKeywords(place);
  std::vector<FormulaId> parts;
  if (const JsonValue* reference = schema.Find("$ref")) {
    if (!reference->IsString()) Malformed(place.pointer + "/$ref", "must be a string");
    parts.push_back(Resolve(place, reference->text, place.pointer + "/$ref"));
    if (draft_ != 0 && draft_ <= 7) return parts[0];
  }
  if (const JsonValue* reference = schema.Find("$dynamicRef")) {
    if (!reference->IsString()) Malformed(place.pointer + "/$dynamicRef", "must be a string");
    const size_t hash = reference->text.find('#');
    const std::string name = hash == std::string::npos ? "" : reference->text.substr(hash + 1);
    const auto anchors = dynamic_anchors_.find(name);
    if (anchors != dynamic_anchors_.end() && anchors->second > 1)
      Unsupported(place.pointer + "/$dynamicRef", "$dynamicRef with several possible targets is not supported");
    parts.push_back(Resolve(place, reference->text, place.pointer + "/$dynamicRef"));
  }
  if (const JsonValue* reference = schema.Find("$recursiveRef")) {
    if (!reference->IsString()) Malformed(place.pointer + "/$recursiveRef", "must be a string");
    const auto anchors = dynamic_anchors_.find("$recursive");
    if (anchors != dynamic_anchors_.end() && (anchors->second > 1 || resources_.size() > 2))
      Unsupported(place.pointer + "/$recursiveRef", "$recursiveRef with several possible targets is not supported");
    parts.push_back(Resolve(place, reference->text, place.pointer + "/$recursiveRef"));
  }
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

FormulaId SchemaCompiler::NumberAtom(NodeId node, NodeId other) {
  Atom atom;
  atom.kind = Atom::kNumber;
  atom.node = node;
  atom.other = other;
  return formulas_.AtomOf(std::move(atom));
}

FormulaId SchemaCompiler::StringAtom(NodeId node, NodeId other) {
  Atom atom;
  atom.kind = Atom::kString;
  atom.node = node;
  atom.other = other;
  return formulas_.AtomOf(std::move(atom));
}

FormulaId SchemaCompiler::CountAtom(Atom::Kind kind, uint64_t min, uint64_t max) {
  Atom atom;
  atom.kind = kind;
  atom.min = min;
  atom.max = max;
  return formulas_.AtomOf(std::move(atom));
}

// Scalars of one type share an atom, so that a long enum is one automaton.
FormulaId SchemaCompiler::Enumerated(const std::vector<JsonValue>& values) {
  std::vector<FormulaId> options;
  std::vector<NodeId> texts, numbers, others;
  unsigned bools = 0;
  for (const JsonValue& value : values) {
    if (value.IsString()) {
      texts.push_back(strict_text_.Text(value.text));
    } else if (value.IsBool()) {
      bools |= value.type == JsonValue::kTrue ? 2 : 1;
    } else if (value.IsNumber()) {
      Decimal decimal;
      if (!ParseDecimal(value.text, &decimal)) throw SchemaError("UNSUPPORTED", "", "a number with an exponent beyond 400");
      numbers.push_back(numbers_.Exactly(decimal));
      others.push_back(numbers_.Ordered(decimal, kLess | kGreater));
    } else {
      options.push_back(Value(value));
    }
  }
  if (!texts.empty()) {
    const NodeId node = pool_.Alternate(std::move(texts));
    options.push_back(formulas_.And({formulas_.Types(kStringType),
                                     StringAtom(node, pool_.And({strict_text_.AnyText(), pool_.Not(node)}))}));
  }
  if (!numbers.empty())
    options.push_back(formulas_.And({formulas_.Types(kNumberType),
                                     NumberAtom(pool_.Alternate(std::move(numbers)), pool_.And(std::move(others)))}));
  if (bools) {
    Atom atom;
    atom.kind = Atom::kBool;
    atom.mask = bools;
    options.push_back(formulas_.And({formulas_.Types(kBoolType), formulas_.AtomOf(std::move(atom))}));
  }
  return formulas_.Or(std::move(options));
}

FormulaId SchemaCompiler::Value(const JsonValue& value) {
  switch (value.type) {
    case JsonValue::kNull:
      return formulas_.Types(kNullType);
    case JsonValue::kArray: {
      Atom items;
      items.kind = Atom::kItems;
      for (const JsonValue& item : value.items) items.prefix.push_back(Value(item));
      items.rest = kFalseFormula;
      return formulas_.And({formulas_.Types(kArrayType), formulas_.AtomOf(std::move(items)),
                            CountAtom(Atom::kItemCount, value.items.size(), value.items.size())});
    }
    case JsonValue::kObject: {
      std::vector<FormulaId> parts{formulas_.Types(kObjectType)};
      Atom members;
      members.kind = Atom::kMembers;
      std::vector<NodeId> keys;
      for (const auto& [key, member] : value.members) {
        members.properties.push_back({key, Value(member)});
        keys.push_back(strict_text_.Text(key));
        Atom required;
        required.kind = Atom::kRequired;
        required.key = key;
        parts.push_back(formulas_.AtomOf(std::move(required)));
      }
      members.rest = kFalseFormula;
      members.other = pool_.And({strict_text_.AnyText(), pool_.Not(pool_.Alternate(std::move(keys)))});
      parts.push_back(formulas_.AtomOf(std::move(members)));
      return formulas_.And(std::move(parts));
    }
    default:
      return Enumerated({value});
  }
}

uint64_t SchemaCompiler::Count(const JsonValue& value, const std::string& pointer) {
  Decimal decimal;
  if (!value.IsNumber() || !ParseDecimal(value.text, &decimal) || !decimal.IsInteger() || decimal.negative)
    Malformed(pointer, "must be a non-negative integer");
  const std::string digits = decimal.IntegerDigits();
  return digits.size() > 9 ? 1000000000ull : std::stoull(digits);
}

Decimal SchemaCompiler::Number(const JsonValue& value, const std::string& pointer) {
  Decimal decimal;
  if (!value.IsNumber()) Malformed(pointer, "must be a number");
  if (!ParseDecimal(value.text, &decimal)) Unsupported(pointer, "an exponent beyond 400 is not supported");
  return decimal;
}

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
    atom.pointer = place.pointer;
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
    atom.pointer = place.pointer + "/propertyNames";
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
      Atom atom;
      atom.kind = Atom::kUnique;
      atom.pointer = "#" + place.pointer + "/uniqueItems";
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
  if (const JsonValue* inner = schema.Find("not")) parts->push_back(formulas_.Not(Schema(Below(place, "not", *inner))));
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

std::string EscapePointer(std::string_view step) {
  std::string result;
  for (char c : step) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result.push_back(c);
    }
  }
  return result;
}

std::string ResolveUri(const std::string& base, const std::string& reference) {
  if (reference.empty()) return base;
  if (reference[0] == '#') return base.substr(0, base.find('#')) + reference;
  const size_t colon = reference.find(':');
  if (colon != std::string::npos && reference.find_first_of("/?#") > colon) return reference;
  const size_t scheme = base.find("://");
  if (scheme == std::string::npos) {
    const size_t slash = base.rfind('/');
    if (reference[0] == '/' || slash == std::string::npos) return reference;
    return base.substr(0, slash + 1) + reference;
  }
  const size_t path = base.find('/', scheme + 3);
  const std::string host = base.substr(0, path);
  if (reference[0] == '/') return host + reference;
  const size_t slash = base.rfind('/');
  std::string folder = path == std::string::npos ? host + "/" : base.substr(0, slash + 1);
  std::string rest = reference;
  while (rest.starts_with("../") || rest.starts_with("./")) {
    if (rest.starts_with("../") && folder.size() > host.size() + 1)
      folder = folder.substr(0, folder.rfind('/', folder.size() - 2) + 1);
    rest = rest.substr(rest.find('/') + 1);
  }
  return folder + rest;
}

}  // namespace onpolicy::grammar
