// A keyword's name -> its drafts, its own schema, the place of its subschemas, and the function that reads it.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace onpolicy::grammar {

class SchemaSite;
struct JsonValue;

// Drafts, as bits.
constexpr unsigned kDraft4 = 1, kDraft6 = 2, kDraft7 = 4, kDraft2019 = 8, kDraft2020 = 16;
constexpr unsigned kFrom2019 = kDraft2019 | kDraft2020, kFrom7 = kDraft7 | kFrom2019, kFrom6 = kDraft6 | kFrom7;
constexpr unsigned kAllDrafts = kDraft4 | kFrom6;

// The schemas in the value of a keyword.
enum class Subschemas { kNone, kOne, kList, kOneOrList, kMap };

struct Keyword {
  const char* name;
  unsigned drafts;     // a keyword whose schema changed between drafts has several rows
  const char* schema;  // its own, within the schema of schemas
  void (*read)(SchemaSite& site) = nullptr;  // neighbouring rows with the same function are read together, once
  Subschemas subschemas = Subschemas::kNone;
  unsigned order = 0;  // position of its function among all, set by the index
};

// Schemas of keywords that several rows share.
namespace meta {
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
constexpr char kNames[] = R"({"$ref":"#/definitions/stringArray"})";
constexpr char kValues[] = R"({"type":"array","items":{}})";
}  // namespace meta

// The rows of one file each, in the order in which they are read.
std::span<const Keyword> ScalarKeywords();
std::span<const Keyword> ObjectKeywords();
std::span<const Keyword> ArrayKeywords();
std::span<const Keyword> LogicKeywords();

// Returns the regular expression over the whole string that a `format` stands for, or null if it is unknown.
const char* FormatPattern(std::string_view format);

// Returns all rows of a keyword combined. Returns null for a name that no draft has, or that restricts nothing.
const Keyword* FindKeyword(std::string_view name);
// Returns the place of a keyword's subschemas, also for keywords that restrict nothing.
Subschemas SubschemasOf(std::string_view name);
// Reads all keywords of a schema object.
void ReadKeywords(const JsonValue& schema, SchemaSite& site);
// Returns a meta-schema as JSON text, by its URI without fragment, so that documents may refer to it. Empty for any other URI. Those of
// 2019-09 and 2020-12 are in one piece, without their vocabularies.
std::string MetaSchema(std::string_view uri);

}  // namespace onpolicy::grammar
