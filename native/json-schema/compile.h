// JSON Schema -> a formula: the keywords of drafts 4 to 2020-12, references, and refusals that name a pointer.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "json-schema/document.h"
#include "json-schema/options.h"
#include "json-schema/values.h"

namespace onpolicy::grammar {

class SchemaCompiler {
 public:
  SchemaCompiler(RegexPool& pool, JsonValue root, const SchemaOptions& options);

  // The root; throws SpecError.
  FormulaId Compile();
  // The formula of a schema.
  FormulaId Schema(const Place& place);
  // The formula of a reference's target.
  FormulaId Target(uint32_t reference) const { return targets_[reference].formula; }

  SchemaDocument& document() { return document_; }
  const SchemaOptions& options() const { return options_; }
  ValueFormulas& values() { return values_; }
  FormulaTable& formulas() { return values_.formulas(); }
  std::vector<std::string>& warnings() { return warnings_; }
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
  std::vector<std::string> warnings_;
  bool any_order_ = false;
  bool is_negated_ = false;
};

}  // namespace onpolicy::grammar
