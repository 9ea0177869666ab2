// Values of any type (type, enum, const), numbers and strings.
#include <algorithm>

#include "grammar/json-schema/compile.h"
#include "grammar/json-schema/keywords.h"

namespace onpolicy::grammar {
namespace {

using namespace meta;

constexpr std::pair<const char*, unsigned> kTypes[] = {{"null", kNullType},     {"boolean", kBoolType}, {"number", kNumberType},
                                                       {"string", kStringType}, {"array", kArrayType},  {"object", kObjectType}};

void ReadType(SchemaSite& site) {
  const JsonValue& type = *site.Find("type");
  const std::vector<JsonValue> names = type.IsArray() ? type.items : std::vector<JsonValue>{type};
  unsigned mask = 0;
  bool integer = false;
  for (const JsonValue& name : names) {
    if (!name.IsString()) site.Malformed("type", "must be a type name or a non-empty list of them");
    const auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& row) { return row.first == name.text; });
    if (known != std::end(kTypes)) {
      mask |= known->second;
    } else if (name.text == "integer") {
      integer = true;
    } else {
      site.Malformed("type", "unknown type '" + name.text + "'");
    }
  }
  if (names.empty()) site.Malformed("type", "must be a type name or a non-empty list of them");
  if (integer && !(mask & kNumberType)) {
    mask |= kNumberType;
    const NumberLanguage& numbers = site.values().numbers();
    site.Add(site.values().Number(numbers.Integer(), numbers.NotInteger()));
  }
  site.Add(site.formulas().Types(mask));
}

void ReadEnum(SchemaSite& site) {
  const JsonValue& values = *site.Find("enum");
  if (!values.IsArray() || values.items.empty()) site.Malformed("enum", "must be a non-empty list");
  site.Add(site.values().AnyOf(values.items, site.any_order()));
}

void ReadConst(SchemaSite& site) { site.Add(site.values().Exactly(*site.Find("const"), site.any_order())); }

// `side`: kGreater or kLess.
void ReadBound(SchemaSite& site, const char* keyword, const char* exclusive, unsigned side) {
  const auto add = [&](const char* of, unsigned relations) {
    NumberLanguage& numbers = site.values().numbers();
    if (const auto bound = site.FindNumber(of))
      site.Add(site.values().Number(numbers.Ordered(*bound, relations), numbers.Ordered(*bound, ~relations & 7)));
  };
  // In draft 4 the exclusive form is a flag.
  const JsonValue* strict = site.Find(exclusive);
  const bool is_flag = strict && strict->IsBool() && (site.draft() == 0 || site.draft() == kDraft4);
  add(keyword, is_flag && strict->type == JsonValue::kTrue ? side : side | kEqual);
  if (!is_flag) add(exclusive, side);
}

void ReadMinimum(SchemaSite& site) { ReadBound(site, "minimum", "exclusiveMinimum", kGreater); }
void ReadMaximum(SchemaSite& site) { ReadBound(site, "maximum", "exclusiveMaximum", kLess); }

void ReadMultipleOf(SchemaSite& site) {
  const Decimal step = *site.FindNumber("multipleOf");
  if (step.negative || step.IsZero()) site.Malformed("multipleOf", "must be greater than zero");
  NumberLanguage& numbers = site.values().numbers();
  NodeId node, other;
  if (!numbers.Multiple(step, false, &node) || !numbers.Multiple(step, true, &other))
    site.Unsupported("multipleOf", "multipleOf " + site.Find("multipleOf")->text + " is too fine or too large to enforce");
  site.Add(site.values().Number(node, other));
}

void ReadLength(SchemaSite& site) {
  const uint64_t low = site.FindCount("minLength").value_or(0), high = site.FindCount("maxLength").value_or(kUnlimited);
  RegexPool& pool = site.values().pool();
  const auto repeat = [&](uint64_t from, uint64_t to) {
    if (from > to) return kNothing;
    return pool.Repeat(site.values().free_text().Any(), static_cast<uint32_t>(from), static_cast<uint32_t>(to));
  };
  std::vector<NodeId> outside;
  if (low > 0) outside.push_back(repeat(0, low - 1));
  if (high != kUnlimited) outside.push_back(repeat(high + 1, kUnlimited));
  const NodeId inside = repeat(low, high);
  site.Add(site.values().String(inside, pool.Alternate(std::move(outside))));
}

void ReadPattern(SchemaSite& site) {
  site.Add(site.values().String(site.Pattern(*site.FindText("pattern"), true, "pattern")));
}

void ReadFormat(SchemaSite& site) {
  const std::string& name = *site.FindText("format");
  if (const char* pattern = FormatPattern(name)) {
    site.Add(site.values().String(site.Pattern(pattern, false, "format")));
  } else if (site.options().refuse_unknown) {
    site.Unsupported("format", "unknown format '" + name + "'");
  } else {
    site.Warn("format", "unknown format '" + name + "' is not enforced");
  }
}

constexpr Keyword kScalarKeywords[] = {
    {"type", kAllDrafts,
     R"({"anyOf":[{"$ref":"#/definitions/simpleTypes"},)"
     R"({"type":"array","items":{"$ref":"#/definitions/simpleTypes"},"minItems":1,"uniqueItems":true}]})",
     ReadType},
    {"enum", kDraft4, R"({"type":"array","items":{},"minItems":1,"uniqueItems":true})", ReadEnum},
    {"enum", kFrom6, kValues, ReadEnum},
    {"const", kFrom6, kAnything, ReadConst},
    {"minimum", kAllDrafts, kNumber, ReadMinimum},
    {"exclusiveMinimum", kDraft4, kBoolean, ReadMinimum},
    {"exclusiveMinimum", kFrom6, kNumber, ReadMinimum},
    {"maximum", kAllDrafts, kNumber, ReadMaximum},
    {"exclusiveMaximum", kDraft4, kBoolean, ReadMaximum},
    {"exclusiveMaximum", kFrom6, kNumber, ReadMaximum},
    {"multipleOf", kAllDrafts, R"({"type":"number","exclusiveMinimum":0})", ReadMultipleOf},
    {"minLength", kAllDrafts, kCount, ReadLength},
    {"maxLength", kAllDrafts, kCount, ReadLength},
    {"pattern", kAllDrafts, R"({"type":"string","format":"regex"})", ReadPattern},
    {"format", kAllDrafts, kString, ReadFormat},
};

}  // namespace

std::span<const Keyword> ScalarKeywords() { return kScalarKeywords; }

}  // namespace onpolicy::grammar
