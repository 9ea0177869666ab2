// Typed access to the values of keywords.
#include "json-schema/site.h"

#include "json-schema/keywords.h"
#include "regex/parse.h"

namespace onpolicy::grammar {

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
  ParseError error;
  const NodeId node = ParseRegex(text, {.search = search, .allow_lookahead = true}, values().strict_text(), &error);
  if (error.ok()) return node;
  const std::string what = "pattern: " + error.message + " at offset " + std::to_string(error.position);
  if (error.unsupported) Unsupported(step, what);
  Malformed(step, what);
}

bool SchemaSite::any_order() const {
  const JsonValue* order = place_.schema->Find("x-property-order");
  return compiler_.any_order() || (order && order->IsString() && order->text == "any");
}

}  // namespace onpolicy::grammar
