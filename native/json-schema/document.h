// A schema's JSON -> where each schema stands in it, and where references lead: by URI, pointer, anchor or dynamic anchor.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"

namespace onpolicy::grammar {

struct Place {
  const JsonValue* schema;
  std::string base;     // URI of the resource it belongs to
  std::string pointer;  // from the root of the document
  uint32_t scope = 0;   // number of the dynamic anchors that are bound on the way to it
};

// Refusals that name a pointer.
[[noreturn]] void Malformed(const std::string& pointer, const std::string& what, std::optional<size_t> offset = {});
[[noreturn]] void Unsupported(const std::string& pointer, const std::string& what, std::optional<size_t> offset = {});
std::string EscapePointer(std::string_view step);

class SchemaDocument {
 public:
  // `schemas`: texts by URI that references may lead to.
  SchemaDocument(JsonValue root, std::map<std::string, std::string> schemas);

  const JsonValue& root() const { return root_; }
  Place RootPlace() const { return places_.at(&root_); }
  // A bit of keywords.h; 0 when the schema does not say.
  unsigned draft() const { return draft_; }
  // Up to draft 7, nothing beside a $ref counts.
  bool IgnoresSiblings(const JsonValue& schema) const;
  // Whether any schema that was met looks at what its parts evaluated.
  bool has_unevaluated() const { return has_unevaluated_; }
  // `schema`, which stands below `place`.
  Place Below(const Place& place, const std::string& step, const JsonValue& schema) const;
  // A resource that is entered binds the dynamic anchors that are not bound yet.
  Place Entered(const Place& place);
  // Where the reference of a keyword leads; `pointer` names it in errors.
  Place Target(const Place& from, std::string_view keyword, const JsonValue& reference, const std::string& pointer);

 private:
  // By dynamic anchor, the outermost schema that has it; "" stands for $recursiveAnchor.
  using Scope = std::map<std::string, const JsonValue*>;

  void Index(const Place& given, int depth);
  void IndexBelow(const Place& place, int depth);
  void Anchors(const Place& place);
  // Reads a document that is not part of this one: one of the caller's, or the schema of schemas.
  void Load(const std::string& uri);
  Place Find(const Place& from, const std::string& reference, const std::string& pointer);
  Place Walk(Place place, const std::string& fragment, const std::string& reference, const std::string& pointer) const;

  JsonValue root_;
  unsigned draft_ = 0;
  bool has_unevaluated_ = false;
  std::map<std::string, Place> resources_;        // by absolute URI, or URI#anchor
  std::map<std::string, Scope> dynamic_anchors_;  // by URI of the resource
  std::vector<Scope> scopes_{{}};
  std::map<Scope, uint32_t> scope_index_{{{}, 0}};
  std::map<std::string, std::string> schemas_;  // by URI
  std::deque<JsonValue> loaded_;
  std::unordered_map<const JsonValue*, Place> places_;
};

}  // namespace onpolicy::grammar
