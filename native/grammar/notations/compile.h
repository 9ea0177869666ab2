// A specification of any kind -> a Constraint, or the reason why it is refused. The entry point of the grammar code.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "grammar/json-schema/options.h"
#include "grammar/mask/constraint.h"

namespace onpolicy::grammar {

enum class SpecKind { kJson, kRegex, kChoice, kGrammar, kStructuralTag };

struct Spec {
  SpecKind kind = SpecKind::kJson;
  std::string text;                  // schema, expression, grammar or tag as text
  std::vector<std::string> choices;  // choices of kChoice
  SchemaOptions schema;              // for every JSON Schema inside
};

// Compiles a specification. Throws a Failure with the error and its place; ABORTED soon after `*cancelled` becomes nonzero; WorkSpent after
// `work` units.
std::shared_ptr<Constraint> CompileConstraint(const Spec& spec, std::shared_ptr<const Vocabulary> vocabulary,
                                              const volatile int32_t* cancelled, uint64_t work);

}  // namespace onpolicy::grammar
