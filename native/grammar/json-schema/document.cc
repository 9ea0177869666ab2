// The index of schemas by place, URI and anchor, and the walk along a pointer.
#include "grammar/json-schema/document.h"

#include <algorithm>

#include "base/limits.h"
#include "base/spec-error.h"
#include "grammar/json-schema/keywords.h"

namespace onpolicy::grammar {

static std::string DecodePercent(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded.push_back(static_cast<char>(std::stoi("0" + text.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

// Resolves `reference` against `base`, by the rules for URI references. Keeps the fragment.
static std::string ResolveUri(const std::string& base, const std::string& reference) {
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
  while (rest.starts_with("../") || rest.starts_with(".//")) {
    if (rest.starts_with("../") && folder.size() > host.size() + 1)
      folder = folder.substr(0, folder.rfind('/', folder.size() - 2) + 1);
    rest = rest.substr(rest.find('/') + 1);
  }
  return folder + rest;
}

void Malformed(const std::string& pointer, const std::string& what, std::optional<size_t> offset) {
  throw SpecError("INVALID_REQUEST", "#" + pointer, what, offset);
}
void Unsupported(const std::string& pointer, const std::string& what, std::optional<size_t> offset) {
  throw SpecError("UNSUPPORTED", "#" + pointer, what, offset);
}

SchemaDocument::SchemaDocument(JsonValue root, std::map<std::string, std::string> schemas)
    : root_(std::move(root)), schemas_(std::move(schemas)) {
  if (const JsonValue* schema = root_.Find("$schema"); schema && schema->IsString()) {
    const std::pair<const char*, unsigned> drafts[] = {{"draft-04", kDraft4}, {"draft-06", kDraft6}, {"draft-07", kDraft7},
                                                       {"2019-09", kDraft2019}, {"2020-12", kDraft2020}};
    for (const auto& [name, draft] : drafts)
      if (schema->text.find(name) != std::string::npos) draft_ = draft;
  }
  const Place root_place{&root_, "", ""};
  resources_.emplace("", root_place);
  Index(root_place, 0);
}

bool SchemaDocument::IgnoresSiblings(const JsonValue& schema) const {
  return (draft_ & (kDraft4 | kDraft6 | kDraft7)) && schema.Find("$ref");
}

Place SchemaDocument::Below(const Place& place, const std::string& step, const JsonValue& schema) const {
  const auto it = places_.find(&schema);
  Place below = it != places_.end() ? it->second : Place{&schema, place.base, place.pointer + "/" + step};
  below.scope = place.scope;
  return below;
}

// Finds identifiers and anchors, and the base URI of every subschema.
void SchemaDocument::Index(const Place& given, int depth) {
  Place place = given;
  const JsonValue& schema = *place.schema;
  if (depth > limits::kSchemaDepth) Malformed(place.pointer, "nested too deeply");
  if (!schema.IsObject()) {
    places_.emplace(&schema, place);
    return;
  }
  const JsonValue* id = schema.Find(draft_ == kDraft4 ? "id" : "$id");
  if (id && id->IsString() && !IgnoresSiblings(schema)) {
    const std::string uri = ResolveUri(place.base, id->text);
    if (!id->text.empty() && id->text[0] == '#') {
      resources_.emplace(uri, place);
    } else {
      place.base = uri.substr(0, uri.find('#'));
      resources_.emplace(place.base, place);
    }
  }
  Anchors(place);
  places_.emplace(&schema, place);
  if (schema.Find("unevaluatedItems") || schema.Find("unevaluatedProperties")) has_unevaluated_ = true;
  IndexBelow(place, depth + 1);
}

void SchemaDocument::IndexBelow(const Place& place, int depth) {
  const auto is_schema = [](const JsonValue& value) { return value.IsObject() || value.IsBool(); };
  for (const auto& [key, value] : place.schema->members) {
    const Subschemas kind = SubschemasOf(key);
    const std::string below = place.pointer + "/" + EscapePointer(key);
    if ((kind == Subschemas::kOne || kind == Subschemas::kOneOrList) && is_schema(value))
      Index({&value, place.base, below}, depth);
    if ((kind == Subschemas::kList || kind == Subschemas::kOneOrList) && value.IsArray())
      for (size_t i = 0; i < value.items.size(); i++)
        Index({&value.items[i], place.base, below + "/" + std::to_string(i)}, depth);
    if (kind == Subschemas::kMap && value.IsObject())
      for (const auto& [name, member] : value.members)
        if (is_schema(member)) Index({&member, place.base, below + "/" + EscapePointer(name)}, depth);
  }
}

void SchemaDocument::Anchors(const Place& place) {
  for (const std::string_view keyword : {"$anchor", "$dynamicAnchor"})
    if (const JsonValue* anchor = place.schema->Find(keyword); anchor && anchor->IsString()) {
      resources_.emplace(place.base + "#" + anchor->text, place);
      if (keyword == "$dynamicAnchor") dynamic_anchors_[place.base].emplace(anchor->text, place.schema);
    }
  if (const JsonValue* anchor = place.schema->Find("$recursiveAnchor"); anchor && anchor->type == JsonValue::kTrue)
    dynamic_anchors_[place.base].emplace("", place.schema);
}

Place SchemaDocument::Entered(const Place& place) {
  const auto anchors = dynamic_anchors_.find(place.base);
  if (anchors == dynamic_anchors_.end()) return place;
  Scope scope = scopes_[place.scope];
  scope.insert(anchors->second.begin(), anchors->second.end());
  const auto [it, is_new] = scope_index_.emplace(scope, static_cast<uint32_t>(scopes_.size()));
  if (is_new) scopes_.push_back(std::move(scope));
  Place entered = place;
  entered.scope = it->second;
  return entered;
}

Place SchemaDocument::Target(const Place& from, std::string_view keyword, const JsonValue& reference,
                             const std::string& pointer) {
  if (!reference.IsString()) Malformed(pointer, "must be a string");
  Place target = Find(from, reference.text, pointer);
  target.scope = from.scope;
  if (keyword == "$ref") return target;
  // A dynamic reference leads to the outermost schema that has the same anchor.
  const bool is_recursive = keyword == "$recursiveRef";
  const JsonValue* anchor = target.schema->Find(is_recursive ? "$recursiveAnchor" : "$dynamicAnchor");
  const size_t hash = reference.text.find('#');
  const std::string name = is_recursive || hash == std::string::npos ? "" : reference.text.substr(hash + 1);
  if (!anchor || !(is_recursive ? anchor->type == JsonValue::kTrue : anchor->text == name)) return target;
  const Scope& scope = scopes_[from.scope];
  if (const auto bound = scope.find(name); bound != scope.end()) {
    target = places_.at(bound->second);
    target.scope = from.scope;
  }
  return target;
}

void SchemaDocument::Load(const std::string& uri) {
  const auto given = schemas_.find(uri);
  const std::string text = given != schemas_.end() ? given->second : MetaSchema(uri);
  if (text.empty()) return;
  JsonError error;
  loaded_.push_back(ParseJson(text, &error));
  if (!error.message.empty()) throw SpecError("INVALID_REQUEST", uri, "the schema is not JSON: " + error.message);
  const Place place{&loaded_.back(), uri, ""};
  resources_.emplace(uri, place);
  Index(place, 0);
}

// Returns the target of a reference: an anchor, or a pointer into the document that its URI names.
Place SchemaDocument::Find(const Place& from, const std::string& reference, const std::string& pointer) {
  const std::string uri = ResolveUri(from.base, reference);
  const size_t hash = uri.find('#');
  const std::string base = uri.substr(0, hash);
  const std::string fragment = hash == std::string::npos ? "" : DecodePercent(uri.substr(hash + 1));
  if (!resources_.contains(base)) Load(base);
  if (!fragment.empty() && fragment[0] != '/') {
    const auto anchor = resources_.find(base + "#" + fragment);
    if (anchor == resources_.end()) Unsupported(pointer, "reference '" + reference + "' leads nowhere in this document");
    return anchor->second;
  }
  const auto resource = resources_.find(base);
  if (resource == resources_.end())
    Unsupported(pointer, "reference '" + reference + "' leads out of this document, to no schema that was given");
  return Walk(resource->second, fragment, reference, pointer);
}

// Follows a JSON pointer step by step.
Place SchemaDocument::Walk(Place place, const std::string& fragment, const std::string& reference,
                           const std::string& pointer) const {
  for (size_t at = 0; at < fragment.size();) {
    const size_t end = std::min(fragment.find('/', at + 1), fragment.size());
    std::string step;
    for (size_t i = at + 1; i < end; i++) {
      if (fragment[i] == '~' && i + 1 < end) {
        step.push_back(fragment[++i] == '1' ? '/' : '~');
      } else {
        step.push_back(fragment[i]);
      }
    }
    const JsonValue* next = place.schema->Find(step);
    if (place.schema->IsArray() && !step.empty() && step.size() < 7 &&
        step.find_first_not_of("0123456789") == std::string::npos) {
      const size_t index = std::stoul(step);
      if (index < place.schema->items.size()) next = &place.schema->items[index];
    }
    if (!next) Malformed(pointer, "reference '" + reference + "' leads nowhere");
    const auto known = places_.find(next);
    place = known != places_.end() ? known->second : Place{next, place.base, place.pointer + "/" + EscapePointer(step)};
    at = end;
  }
  return place;
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

}  // namespace onpolicy::grammar
