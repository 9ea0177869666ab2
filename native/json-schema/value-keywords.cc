// type, enum, const.
#include <algorithm>

#include "json-schema/keywords.h"
#include "json-schema/site.h"

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
  site.Add(site.values().AnyOf(values.items));
}

void ReadConst(SchemaSite& site) { site.Add(site.values().Exactly(*site.Find("const"))); }

constexpr Keyword kKeywords[] = {
    {"type", kAllDrafts,
     R"({"anyOf":[{"$ref":"#/definitions/simpleTypes"},)"
     R"({"type":"array","items":{"$ref":"#/definitions/simpleTypes"},"minItems":1,"uniqueItems":true}]})",
     ReadType},
    {"enum", kDraft4, R"({"type":"array","items":{},"minItems":1,"uniqueItems":true})", ReadEnum},
    {"enum", kFrom6, kValues, ReadEnum},
    {"const", kFrom6, kAnything, ReadConst},
};

}  // namespace

std::span<const Keyword> ValueKeywords() { return kKeywords; }

}  // namespace onpolicy::grammar
