// minimum, maximum, their exclusive forms, and multipleOf.
#include "json-schema/keywords.h"
#include "json-schema/site.h"

namespace onpolicy::grammar {
namespace {

using namespace meta;

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

constexpr Keyword kKeywords[] = {
    {"minimum", kAllDrafts, kNumber, ReadMinimum},
    {"exclusiveMinimum", kDraft4, kBoolean, ReadMinimum},
    {"exclusiveMinimum", kFrom6, kNumber, ReadMinimum},
    {"maximum", kAllDrafts, kNumber, ReadMaximum},
    {"exclusiveMaximum", kDraft4, kBoolean, ReadMaximum},
    {"exclusiveMaximum", kFrom6, kNumber, ReadMaximum},
    {"multipleOf", kAllDrafts, R"({"type":"number","exclusiveMinimum":0})", ReadMultipleOf},
};

}  // namespace

std::span<const Keyword> NumberKeywords() { return kKeywords; }

}  // namespace onpolicy::grammar
