// A specification of any kind -> a Constraint, or the reason against it. The one entry to the grammar wing.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "json-schema/options.h"
#include "mask/constraint.h"

namespace onpolicy::grammar {

enum class SpecKind { kJson, kRegex, kChoice, kGrammar, kStructuralTag };

struct Spec {
  SpecKind kind = SpecKind::kJson;
  std::string text;                  // schema, expression, grammar or tag as text
  std::vector<std::string> choices;  // of kChoice
  SchemaOptions schema;              // for every JSON Schema inside
};

// Throws a Failure that says what is wrong and where.
std::shared_ptr<Constraint> CompileConstraint(const Spec& spec, std::shared_ptr<const Vocabulary> vocabulary);

}  // namespace onpolicy::grammar
