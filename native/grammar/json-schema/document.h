// A schema's JSON -> the place of each schema in it, and the targets of references: by URI, pointer, anchor or dynamic anchor.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/json/value.h"

namespace onpolicy::grammar {

struct Place {
  const JsonValue* schema;
  std::string base;     // URI of the resource it belongs to
  std::string pointer;  // from the root of the document
  uint32_t scope = 0;   // number of the set of dynamic anchors that are bound on the way to it
};

// Throw an error that names a pointer.
[[noreturn]] void Malformed(const std::string& pointer, const std::string& what, std::optional<size_t> offset = {});
[[noreturn]] void Unsupported(const std::string& pointer, const std::string& what, std::optional<size_t> offset = {});
std::string EscapePointer(std::string_view step);

class SchemaDocument {
 public:
  // `schemas`: texts of schemas that references may lead to, by URI.
  SchemaDocument(JsonValue root, std::map<std::string, std::string> schemas);

  const JsonValue& root() const { return root_; }
  Place RootPlace() const { return places_.at(&root_); }
  // A bit of keywords.h; 0 if the schema does not name its draft.
  unsigned draft() const { return draft_; }
  // Up to draft 7, keywords beside a $ref are ignored.
  bool IgnoresSiblings(const JsonValue& schema) const;
  // Returns true if a schema seen so far depends on what its parts evaluated.
  bool has_unevaluated() const { return has_unevaluated_; }
  // Returns the place of `schema`, which is one step below `place`.
  Place Below(const Place& place, const std::string& step, const JsonValue& schema) const;
  // Enters a resource: binds those of its dynamic anchors that are not bound yet.
  Place Entered(const Place& place);
  // Returns the target of a keyword's reference. `pointer` names the keyword in errors.
  Place Target(const Place& from, std::string_view keyword, const JsonValue& reference, const std::string& pointer);

 private:
  // By dynamic anchor, the outermost schema that has it; "" stands for $recursiveAnchor.
  using Scope = std::map<std::string, const JsonValue*>;

  void Index(const Place& given, int depth);
  void IndexBelow(const Place& place, int depth);
  void Anchors(const Place& place);
  // Reads a document other than this one: one of the caller's, or a meta-schema.
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
