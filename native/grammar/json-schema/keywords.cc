// Keywords without a function, the index of all keywords, and the meta-schemas made from their rows.
#include "grammar/json-schema/keywords.h"

#include <map>
#include <unordered_map>

#include "grammar/json-schema/compile.h"

namespace onpolicy::grammar {
namespace {

using namespace meta;

constexpr char kReference[] = R"({"type":"string","format":"uri-reference"})";
constexpr char kAnchor[] = R"({"type":"string","pattern":"^[A-Za-z_][-A-Za-z0-9._]*$"})";

// Read by SchemaDocument and SchemaCompiler.
constexpr Keyword kCore[] = {
    {"id", kDraft4, kString},
    {"$id", kFrom6, kReference},
    {"$schema", kDraft4, kString},
    {"$schema", kFrom6, R"({"type":"string","format":"uri"})"},
    {"$ref", kFrom6, kReference},
    {"$comment", kFrom7, kString},
    {"$anchor", kFrom2019, kAnchor},
    {"$recursiveRef", kDraft2019, kReference},
    {"$recursiveAnchor", kDraft2019, kBoolean},
    {"$dynamicRef", kDraft2020, kReference},
    {"$dynamicAnchor", kDraft2020, kAnchor},
    {"$vocabulary", kFrom2019, R"({"type":"object","additionalProperties":{"type":"boolean"}})"},
    {"$defs", kFrom2019, kNamedSchemas, nullptr, Subschemas::kMap},
    {"definitions", kAllDrafts, kNamedSchemas, nullptr, Subschemas::kMap},
    {"unevaluatedItems", kFrom2019, kSchema, nullptr, Subschemas::kOne},
    {"unevaluatedProperties", kFrom2019, kSchema, nullptr, Subschemas::kOne},
    {"x-property-order", 0, kString},
};

// Keywords that restrict nothing.
constexpr Keyword kAnnotations[] = {
    {"title", kAllDrafts, kString},
    {"description", kAllDrafts, kString},
    {"default", kAllDrafts, kAnything},
    {"readOnly", kFrom7, kBoolean},
    {"writeOnly", kFrom7, kBoolean},
    {"deprecated", kFrom2019, kBoolean},
    {"examples", kFrom6, kValues},
    {"contentMediaType", kFrom7, kString},
    {"contentEncoding", kFrom7, kString},
    {"contentSchema", kFrom2019, kSchema, nullptr, Subschemas::kOne},
};

template <typename Visit>
void ForEachGroup(Visit visit) {
  for (const auto& rows :
       {std::span<const Keyword>(kCore), ScalarKeywords(), ObjectKeywords(), ArrayKeywords(), LogicKeywords()})
    visit(rows);
}

std::string SchemaOf(unsigned draft) {
  const bool is_old = draft == kDraft4;
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
  const auto add = [&](std::span<const Keyword> rows) {
    for (const Keyword& keyword : rows) {
      if (!(keyword.drafts & draft)) continue;
      text += std::string(separator) + '"' + keyword.name + "\":" + keyword.schema;
      separator = ",";
    }
  };
  add(kAnnotations);
  ForEachGroup(add);
  return text + "}}";
}

}  // namespace

const Keyword* FindKeyword(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, Keyword> keywords;
    unsigned order = 0;
    void (*last)(SchemaSite&) = nullptr;
    ForEachGroup([&](std::span<const Keyword> rows) {
      for (const Keyword& row : rows) {
        order += row.read != last;
        last = row.read;
        Keyword& keyword = keywords.emplace(row.name, row).first->second;
        keyword.drafts |= row.drafts;
        keyword.order = order;
      }
    });
    return keywords;
  }();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &found->second;
}

Subschemas SubschemasOf(std::string_view name) {
  if (const Keyword* keyword = FindKeyword(name)) return keyword->subschemas;
  for (const Keyword& keyword : kAnnotations)
    if (name == keyword.name) return keyword.subschemas;
  return Subschemas::kNone;
}

void ReadKeywords(const JsonValue& schema, SchemaSite& site) {
  std::map<unsigned, void (*)(SchemaSite&)> readers;  // by order
  for (const auto& [name, value] : schema.members)
    if (const Keyword* keyword = FindKeyword(name); keyword && keyword->read && site.Find(name))
      readers.emplace(keyword->order, keyword->read);
  for (const auto& [order, read] : readers) read(site);
}

std::string MetaSchema(std::string_view uri) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (uri.starts_with(scheme)) uri.remove_prefix(scheme.size());
  if (uri == "json-schema.org/draft-04/schema") return SchemaOf(kDraft4);
  if (uri == "json-schema.org/draft-06/schema") return SchemaOf(kDraft6);
  if (uri == "json-schema.org/draft-07/schema") return SchemaOf(kDraft7);
  if (uri == "json-schema.org/draft/2019-09/schema") return SchemaOf(kDraft2019);
  if (uri == "json-schema.org/draft/2020-12/schema" || uri == "json-schema.org/schema") return SchemaOf(kDraft2020);
  return "";
}

}  // namespace onpolicy::grammar
