// JSON Schema -> a formula: the keywords of drafts 4 to 2020-12, references, and refusals that name a pointer.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/spec-error.h"
#include "grammar/json-schema/document.h"
#include "grammar/json-schema/options.h"
#include "grammar/json-schema/values.h"

namespace onpolicy::grammar {

class SchemaCompiler {
 public:
  SchemaCompiler(RegexPool& pool, JsonValue root, const SchemaOptions& options);

  // Compiles the root; throws SpecError.
  FormulaId Compile();
  // Returns the formula of a schema.
  FormulaId Schema(const Place& place);
  // Returns the formula of a reference's target.
  FormulaId Target(uint32_t reference) const { return targets_[reference].formula; }

  SchemaDocument& document() { return document_; }
  const SchemaOptions& options() const { return options_; }
  ValueFormulas& values() { return values_; }
  FormulaTable& formulas() { return values_.formulas(); }
  std::vector<Warning>& warnings() { return warnings_; }
  bool any_order() const { return any_order_; }
  bool& is_negated() { return is_negated_; }

 private:
  struct TargetInfo {
    Place place;
    FormulaId formula = kTrueFormula;
  };

  std::vector<FormulaId> References(const Place& place);
  FormulaId WithUnevaluated(const Place& place, FormulaId formula);
  void WarnOfOthers(const Place& place);

  SchemaDocument document_;
  SchemaOptions options_;
  ValueFormulas values_;
  std::map<std::pair<const JsonValue*, uint32_t>, uint32_t> target_of_;  // by schema and scope
  std::vector<TargetInfo> targets_;
  std::vector<Warning> warnings_;
  bool any_order_ = false;
  bool is_negated_ = false;
};

// One schema object while its keywords are read: gives their functions the values, and collects their formulas.
class SchemaSite {
 public:
  SchemaSite(SchemaCompiler& compiler, const Place& place) : compiler_(compiler), place_(place) {}

  // Returns the value of a keyword, or null if it is missing or unknown to the draft.
  const JsonValue* Find(std::string_view keyword) const;
  // Return the same, but throw for values of another type.
  const JsonValue* FindObject(const std::string& keyword) const;
  std::optional<uint64_t> FindCount(const std::string& keyword) const;
  std::optional<Decimal> FindNumber(const std::string& keyword) const;
  const std::string* FindText(const std::string& keyword) const;
  // Returns the strings of a list at a step below this schema.
  std::vector<std::string> Texts(const JsonValue& list, const std::string& step) const;
  // Returns the formula of a subschema at a step below this one.
  FormulaId Schema(const std::string& step, const JsonValue& schema);
  // Returns the same for a keyword of this schema, or kTrueFormula if it is missing.
  FormulaId Schema(const char* keyword);
  // Returns the language of a regular expression at a step below this schema. `search`: it may match anywhere, else as a whole.
  NodeId Pattern(const std::string& text, bool search, const std::string& step);

  // Adds a formula that the schema also demands.
  void Add(FormulaId formula) { parts_.push_back(formula); }
  void Add(Atom atom) { Add(formulas().AtomOf(std::move(atom))); }
  void Warn(const std::string& step, const std::string& what) { compiler_.warnings().push_back({Pointer(step) + ": " + what, true}); }
  [[noreturn]] void Malformed(const std::string& step, const std::string& what, std::optional<size_t> offset = {}) const {
    onpolicy::grammar::Malformed(place_.pointer + "/" + step, what, offset);
  }
  [[noreturn]] void Unsupported(const std::string& step, const std::string& what, std::optional<size_t> offset = {}) const {
    onpolicy::grammar::Unsupported(place_.pointer + "/" + step, what, offset);
  }
  std::string Pointer(const std::string& step) const { return "#" + place_.pointer + "/" + step; }

  ValueFormulas& values() { return compiler_.values(); }
  FormulaTable& formulas() { return compiler_.formulas(); }
  const SchemaOptions& options() const { return compiler_.options(); }
  unsigned draft() const { return compiler_.document().draft(); }
  // Returns true if the properties of this schema may come in any order.
  bool any_order() const;
  // True inside an odd number of `not`.
  bool& is_negated() { return compiler_.is_negated(); }
  std::vector<FormulaId>& parts() { return parts_; }

 private:
  SchemaCompiler& compiler_;
  const Place& place_;
  std::vector<FormulaId> parts_;
};

}  // namespace onpolicy::grammar
