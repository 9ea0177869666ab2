// References: by URI, pointer, anchor, or by an anchor that the way there decides.
#include "base/spec-error.h"
#include "json-schema/compile.h"
#include "json-schema/meta-schemas.h"

namespace onpolicy::grammar {

void SchemaCompiler::Anchors(const Place& place) {
  for (const char* keyword : {"$anchor", "$dynamicAnchor"})
    if (const JsonValue* anchor = place.schema->Find(keyword); anchor && anchor->IsString()) {
      resources_.emplace(place.base + "#" + anchor->text, place);
      if (keyword[1] == 'd') dynamic_anchors_[place.base].emplace(anchor->text, place.schema);
    }
  if (const JsonValue* anchor = place.schema->Find("$recursiveAnchor"); anchor && anchor->type == JsonValue::kTrue)
    dynamic_anchors_[place.base].emplace("", place.schema);
}

// A resource that is entered binds the dynamic anchors that are not bound yet.
SchemaCompiler::Place SchemaCompiler::Entered(const Place& place) {
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

void SchemaCompiler::References(const Place& place, std::vector<FormulaId>* parts) {
  for (const char* keyword : {"$ref", "$dynamicRef", "$recursiveRef"}) {
    const JsonValue* reference = place.schema->Find(keyword);
    if (!reference) continue;
    const std::string pointer = place.pointer + "/" + keyword;
    if (!reference->IsString()) Malformed(pointer, "must be a string");
    Place target = Find(place, reference->text, pointer);
    // A dynamic one goes on to the outermost schema that has the same anchor.
    if (keyword[1] != 'r' || keyword[3] == 'c') {
      const bool is_recursive = keyword[1] == 'r';
      const JsonValue* anchor = target.schema->Find(is_recursive ? "$recursiveAnchor" : "$dynamicAnchor");
      const size_t hash = reference->text.find('#');
      const std::string name = is_recursive || hash == std::string::npos ? "" : reference->text.substr(hash + 1);
      const bool is_dynamic = anchor && (is_recursive ? anchor->type == JsonValue::kTrue : anchor->text == name);
      const Scope& scope = scopes_[place.scope];
      if (const auto bound = scope.find(name); is_dynamic && bound != scope.end()) target = places_.at(bound->second);
    }
    parts->push_back(Refer(place, std::move(target)));
  }
}

FormulaId SchemaCompiler::Refer(const Place& from, Place target) {
  target.scope = from.scope;
  const auto [it, is_new] =
      target_of_.emplace(std::make_pair(target.schema, target.scope), static_cast<uint32_t>(targets_.size()));
  if (is_new) targets_.push_back({std::move(target), kTrueFormula, false});
  return formulas_.Reference(it->second);
}

// The schemas of schemas are known without being part of the document.
bool SchemaCompiler::LoadMetaSchema(const std::string& uri) {
  const std::string text = MetaSchema(uri);
  if (text.empty()) return false;
  JsonError error;
  meta_schemas_.push_back(ParseJson(text, &error));
  const Place place{&meta_schemas_.back(), uri, ""};
  resources_.emplace(uri, place);
  Index(place, 0);
  return true;
}

// Where a reference leads: to an anchor, or by a pointer through the document that its URI names.
SchemaCompiler::Place SchemaCompiler::Find(const Place& from, const std::string& reference, const std::string& pointer) {
  const std::string uri = ResolveUri(from.base, reference);
  const size_t hash = uri.find('#');
  const std::string base = uri.substr(0, hash);
  std::string fragment = hash == std::string::npos ? "" : uri.substr(hash + 1);
  // Percent-decoding of the fragment.
  std::string decoded;
  for (size_t i = 0; i < fragment.size(); i++) {
    if (fragment[i] == '%' && i + 2 < fragment.size()) {
      decoded.push_back(static_cast<char>(std::stoi("0" + fragment.substr(i + 1, 2), nullptr, 16)));
      i += 2;
    } else {
      decoded.push_back(fragment[i]);
    }
  }
  if (!resources_.contains(base)) LoadMetaSchema(base);
  auto found = resources_.find(base);
  Place place;
  if (!decoded.empty() && decoded[0] != '/') {
    found = resources_.find(base + "#" + decoded);
    if (found == resources_.end()) Unsupported(pointer, "reference '" + reference + "' leads nowhere in this document");
    place = found->second;
  } else {
    if (found == resources_.end())
      Unsupported(pointer, "reference '" + reference + "' leads out of this document, which is not supported");
    place = found->second;
    for (size_t at = 0; at < decoded.size();) {
      size_t end = decoded.find('/', at + 1);
      if (end == std::string::npos) end = decoded.size();
      std::string step;
      for (size_t i = at + 1; i < end; i++) {
        if (decoded[i] == '~' && i + 1 < end) {
          step.push_back(decoded[++i] == '1' ? '/' : '~');
        } else {
          step.push_back(decoded[i]);
        }
      }
      const JsonValue* next = place.schema->Find(step);
      if (place.schema->IsArray() && !step.empty() && step.size() < 7 &&
          step.find_first_not_of("0123456789") == std::string::npos) {
        const size_t index = std::stoul(step);
        if (index < place.schema->items.size()) next = &place.schema->items[index];
      }
      if (!next) Malformed(pointer, "reference '" + reference + "' leads nowhere");
      auto known = places_.find(next);
      place = known != places_.end() ? known->second : Place{next, place.base, place.pointer + "/" + EscapePointer(step)};
      at = end;
    }
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

std::string ResolveUri(const std::string& base, const std::string& reference) {
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
  while (rest.starts_with("../") || rest.starts_with("./")) {
    if (rest.starts_with("../") && folder.size() > host.size() + 1)
      folder = folder.substr(0, folder.rfind('/', folder.size() - 2) + 1);
    rest = rest.substr(rest.find('/') + 1);
  }
  return folder + rest;
}

}  // namespace onpolicy::grammar
