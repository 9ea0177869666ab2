// JSON Schema text -> formulas: every keyword of drafts 4 to 2020-12, references, and the refusals that name a pointer.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "json-schema/formula.h"
#include "json-schema/number-language.h"
#include "json-schema/tag-style.h"
#include "json/value.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

struct SchemaOptions {
  bool any_whitespace = true;                     // false: compact JSON
  std::optional<std::string> whitespace_pattern;  // stands at every gap between JSON tokens
  bool disable_additional_properties = false;
  bool refuse_unknown = false;  // unknown formats are errors instead of warnings
  bool any_order = false;       // properties in any order, everywhere
  std::optional<uint32_t> max_blanks;  // the most white space between JSON tokens, of any kind
  const TagStyle* tags = nullptr;      // the root's members are tagged parameters in this style
};

class SchemaCompiler {
 public:
  SchemaCompiler(RegexPool& pool, JsonValue root, const SchemaOptions& options);

  FormulaId Compile();  // the root; throws SpecError
  // The formula of a reference's target.
  FormulaId Target(uint32_t schema) const { return targets_[schema].formula; }
  FormulaTable& formulas() { return formulas_; }
  // What only this value satisfies.
  FormulaId ValueFormula(const JsonValue& value) { return Value(value); }
  NumberLanguage& numbers() { return numbers_; }
  CharEncoder& strict_text() { return strict_text_; }
  CharEncoder& free_text() { return free_text_; }
  std::vector<std::string>& warnings() { return warnings_; }

 private:
  struct Place {
    const JsonValue* schema;
    std::string base;     // URI of the resource it belongs to
    std::string pointer;  // from the root of the document
    uint32_t scope = 0;   // in scopes_: what led there
  };
  // By dynamic anchor, the outermost schema that has it; "" stands for $recursiveAnchor.
  using Scope = std::map<std::string, const JsonValue*>;
  struct TargetInfo {
    Place place;
    FormulaId formula = kTrueFormula;
    bool compiled = false;
  };

  void Index(const Place& place, int depth);
  FormulaId Schema(const Place& place);
  FormulaId Object(const Place& place);
  FormulaId Value(const JsonValue& value);
  FormulaId Enumerated(const std::vector<JsonValue>& values);
  // references.cc
  void Anchors(const Place& place);
  bool LoadMetaSchema(const std::string& uri);
  Place Find(const Place& from, const std::string& reference, const std::string& pointer);
  FormulaId Refer(const Place& from, Place target);
  Place Entered(const Place& place);
  void References(const Place& place, std::vector<FormulaId>* parts);
  // keywords.cc and values.cc
  void Numbers(const Place& place, std::vector<FormulaId>* parts);
  void Strings(const Place& place, std::vector<FormulaId>* parts);
  void Objects(const Place& place, std::vector<FormulaId>* parts);
  void Arrays(const Place& place, std::vector<FormulaId>* parts);
  void Combinators(const Place& place, std::vector<FormulaId>* parts);
  void CheckKeywords(const Place& place);

  FormulaId NumberAtom(NodeId node, NodeId other);
  FormulaId StringAtom(NodeId node, NodeId other);
  FormulaId CountAtom(Atom::Kind kind, uint64_t min, uint64_t max);
  NodeId Pattern(const std::string& text, bool search, const std::string& pointer);
  uint64_t Count(const JsonValue& value, const std::string& pointer);
  Decimal Number(const JsonValue& value, const std::string& pointer);
  [[noreturn]] void Malformed(const std::string& pointer, const std::string& what);
  [[noreturn]] void Unsupported(const std::string& pointer, const std::string& what);
  Place Below(const Place& place, const std::string& step, const JsonValue& schema) const;

  RegexPool& pool_;
  JsonValue root_;
  SchemaOptions options_;
  FormulaTable formulas_;
  NumberLanguage numbers_;
  CharEncoder strict_text_, free_text_;
  int draft_ = 0;  // 4, 6, 7, 2019, 2020; 0 when the schema does not say
  std::map<std::string, Place> resources_;  // by absolute URI, or URI#anchor
  std::map<std::string, Scope> dynamic_anchors_;  // by URI of the resource
  std::vector<Scope> scopes_{{}};
  std::map<Scope, uint32_t> scope_index_{{{}, 0}};
  std::deque<JsonValue> meta_schemas_;
  std::unordered_map<const JsonValue*, Place> places_;
  std::map<std::pair<const JsonValue*, uint32_t>, uint32_t> target_of_;
  std::vector<TargetInfo> targets_;
  std::vector<std::string> warnings_;
  bool any_order_ = false;
  bool is_negated_ = false;  // inside an odd number of `not`
};

// `base` with `reference` put on top, by the rules for URI references; the fragment stays.
std::string ResolveUri(const std::string& base, const std::string& reference);
std::string EscapePointer(std::string_view step);

}  // namespace onpolicy::grammar
