// One table of keywords for all drafts. Members that restrict nothing are left out.
#include "json-schema/meta-schemas.h"

namespace onpolicy::grammar {
namespace {

// Drafts, as bits.
constexpr unsigned k4 = 1, k6 = 2, k7 = 4, k2019 = 8, k2020 = 16;
constexpr unsigned kFrom2019 = k2019 | k2020, kFrom7 = k7 | kFrom2019, kFrom6 = k6 | kFrom7, kAll = k4 | kFrom6;

constexpr char kAnything[] = "{}";
constexpr char kSchema[] = R"({"$ref":"#"})";
constexpr char kSchemaOrBoolean[] = R"({"anyOf":[{"type":"boolean"},{"$ref":"#"}]})";
constexpr char kSchemas[] = R"({"$ref":"#/definitions/schemaArray"})";
constexpr char kOneOrMoreSchemas[] = R"({"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/schemaArray"}]})";
constexpr char kNamedSchemas[] = R"({"type":"object","additionalProperties":{"$ref":"#"}})";
constexpr char kBoolean[] = R"({"type":"boolean"})";
constexpr char kNumber[] = R"({"type":"number"})";
constexpr char kCount[] = R"({"type":"integer","minimum":0})";
constexpr char kString[] = R"({"type":"string"})";
constexpr char kReference[] = R"({"type":"string","format":"uri-reference"})";
constexpr char kAnchor[] = R"({"type":"string","pattern":"^[A-Za-z_][-A-Za-z0-9._]*$"})";
constexpr char kNames[] = R"({"$ref":"#/definitions/stringArray"})";
constexpr char kValues[] = R"({"type":"array","items":{}})";

struct Keyword {
  const char* name;
  const char* schema;
  unsigned drafts;
};

constexpr Keyword kKeywords[] = {
    {"id", kString, k4},
    {"$id", kReference, kFrom6},
    {"$schema", kString, k4},
    {"$schema", R"({"type":"string","format":"uri"})", kFrom6},
    {"$ref", kReference, kFrom6},
    {"$comment", kString, kFrom7},
    {"$anchor", kAnchor, kFrom2019},
    {"$recursiveRef", kReference, k2019},
    {"$recursiveAnchor", kBoolean, k2019},
    {"$dynamicRef", kReference, k2020},
    {"$dynamicAnchor", kAnchor, k2020},
    {"$vocabulary", R"({"type":"object","additionalProperties":{"type":"boolean"}})", kFrom2019},
    {"$defs", kNamedSchemas, kFrom2019},
    {"title", kString, kAll},
    {"description", kString, kAll},
    {"default", kAnything, kAll},
    {"readOnly", kBoolean, kFrom7},
    {"writeOnly", kBoolean, kFrom7},
    {"deprecated", kBoolean, kFrom2019},
    {"examples", kValues, kFrom6},
    {"multipleOf", R"({"type":"number","exclusiveMinimum":0})", kAll},
    {"maximum", kNumber, kAll},
    {"exclusiveMaximum", kBoolean, k4},
    {"exclusiveMaximum", kNumber, kFrom6},
    {"minimum", kNumber, kAll},
    {"exclusiveMinimum", kBoolean, k4},
    {"exclusiveMinimum", kNumber, kFrom6},
    {"maxLength", kCount, kAll},
    {"minLength", kCount, kAll},
    {"pattern", R"({"type":"string","format":"regex"})", kAll},
    {"prefixItems", kSchemas, k2020},
    {"additionalItems", kSchemaOrBoolean, k4},
    {"additionalItems", kSchema, k6 | k7 | k2019},
    {"items", kOneOrMoreSchemas, kAll & ~k2020},
    {"items", kSchema, k2020},
    {"maxItems", kCount, kAll},
    {"minItems", kCount, kAll},
    {"uniqueItems", kBoolean, kAll},
    {"contains", kSchema, kFrom6},
    {"maxContains", kCount, kFrom2019},
    {"minContains", kCount, kFrom2019},
    {"unevaluatedItems", kSchema, kFrom2019},
    {"unevaluatedProperties", kSchema, kFrom2019},
    {"maxProperties", kCount, kAll},
    {"minProperties", kCount, kAll},
    {"required", kNames, kAll},
    {"additionalProperties", kSchemaOrBoolean, k4},
    {"additionalProperties", kSchema, kFrom6},
    {"definitions", kNamedSchemas, kAll},
    {"properties", kNamedSchemas, kAll},
    {"patternProperties", kNamedSchemas, kAll},
    {"dependencies",
     R"({"type":"object","additionalProperties":{"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/stringArray"}]}})", kAll},
    {"dependentSchemas", kNamedSchemas, kFrom2019},
    {"dependentRequired", R"({"type":"object","additionalProperties":{"$ref":"#/definitions/stringArray"}})", kFrom2019},
    {"propertyNames", kSchema, kFrom6},
    {"const", kAnything, kFrom6},
    {"enum", R"({"type":"array","items":{},"minItems":1,"uniqueItems":true})", k4},
    {"enum", kValues, kFrom6},
    {"type",
     R"({"anyOf":[{"$ref":"#/definitions/simpleTypes"},)"
     R"({"type":"array","items":{"$ref":"#/definitions/simpleTypes"},"minItems":1,"uniqueItems":true}]})",
     kAll},
    {"format", kString, kAll},
    {"contentMediaType", kString, kFrom7},
    {"contentEncoding", kString, kFrom7},
    {"contentSchema", kSchema, kFrom2019},
    {"if", kSchema, kFrom7},
    {"then", kSchema, kFrom7},
    {"else", kSchema, kFrom7},
    {"allOf", kSchemas, kAll},
    {"anyOf", kSchemas, kAll},
    {"oneOf", kSchemas, kAll},
    {"not", kSchema, kAll},
};

std::string SchemaOf(unsigned draft) {
  const bool is_old = draft == k4;
  std::string text = is_old ? R"({"type":"object",)" : R"({"type":["object","boolean"],)";
  text += R"("definitions":{"schemaArray":{"type":"array","minItems":1,"items":{"$ref":"#"}},)"
          R"("simpleTypes":{"enum":["array","boolean","integer","null","number","object","string"]},)"
          R"("stringArray":{"type":"array","items":{"type":"string"},"uniqueItems":true)";
  const std::string count = is_old ? "positiveInteger" : "nonNegativeInteger";
  text += is_old ? R"(,"minItems":1})" : "}";
  text += ",\"" + count + "\":" + kCount + ",\"" + count + "Default0\":" + kCount + "},";
  if (is_old) text += R"("dependencies":{"exclusiveMaximum":["maximum"],"exclusiveMinimum":["minimum"]},)";
  text += R"("properties":{)";
  const char* separator = "";
  for (const Keyword& keyword : kKeywords) {
    if (!(keyword.drafts & draft)) continue;
    text += std::string(separator) + '"' + keyword.name + "\":" + keyword.schema;
    separator = ",";
  }
  return text + "}}";
}

}  // namespace

std::string MetaSchema(std::string_view uri) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (uri.starts_with(scheme)) uri.remove_prefix(scheme.size());
  if (uri == "json-schema.org/draft-04/schema") return SchemaOf(k4);
  if (uri == "json-schema.org/draft-06/schema") return SchemaOf(k6);
  if (uri == "json-schema.org/draft-07/schema") return SchemaOf(k7);
  if (uri == "json-schema.org/draft/2019-09/schema") return SchemaOf(k2019);
  if (uri == "json-schema.org/draft/2020-12/schema" || uri == "json-schema.org/schema") return SchemaOf(k2020);
  return "";
}

}  // namespace onpolicy::grammar
