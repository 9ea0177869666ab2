// Runs the front end of a specification and binds the result to the vocabulary.
#include "grammar/notations/compile.h"

#include <algorithm>

#include "base/limits.h"
#include "base/spec-error.h"
#include "grammar/json-schema/rules.h"
#include "grammar/notations/front-ends.h"
#include "grammar/regex/parse.h"

namespace onpolicy::grammar {

static Symbol SchemaRoot(FrontEnd& front, JsonValue schema, const SchemaOptions& options) {
  auto rules = std::make_shared<SchemaRules>(front.grammar, std::move(schema), options);
  front.grammar.Keep(rules);
  const Symbol root = rules->Root();
  front.warnings.insert(front.warnings.end(), rules->warnings().begin(), rules->warnings().end());
  return root;
}

Symbol SchemaSymbol(FrontEnd& front, JsonValue schema, const SchemaOptions& options) {
  if (!schema.IsObject() && !schema.IsBool())
    throw SpecError("INVALID_REQUEST", "#", "a schema must be an object or a boolean");
  if (options.refuse_unknown) return SchemaRoot(front, std::move(schema), options);
  try {
    return SchemaRoot(front, schema, options);
  } catch (const UnenforceableSchema& error) {
    SchemaOptions any_of = options;
    any_of.reads_any_of = true;
    front.warnings.push_back({error.status().places[0] + ": the combinations are too many to enforce, every oneOf reads as anyOf", true});
    return SchemaRoot(front, std::move(schema), any_of);
  }
}

Symbol FrontEnd::OneOf(std::vector<uint32_t> tokens, bool inverted) const {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  TokenSet set;
  set.tokens = std::move(tokens);
  set.inverted = inverted;
  return grammar.Tokens(std::move(set));
}

Symbol RegexSymbol(FrontEnd& front, std::string_view pattern, TextForm form) {
  CharEncoder encoder(front.grammar.regex(), form);
  try {
    return front.grammar.Terminal(ParseRegex(pattern, {}, encoder));
  } catch (const ParseError& error) {
    throw SpecError(error.code(), "offset " + std::to_string(error.position), error.message, error.position);
  }
}

static Symbol ChoiceSymbol(FrontEnd& front, const std::vector<std::string>& choices) {
  if (choices.empty()) throw SpecError("INVALID_REQUEST", "", "at least one choice is needed");
  RegexPool& pool = front.grammar.regex();
  std::vector<NodeId> options;
  for (const std::string& choice : choices) options.push_back(pool.Literal(choice));
  return front.grammar.Terminal(pool.Alternate(std::move(options)));
}

static Symbol Run(FrontEnd& front, const Spec& spec) {
  switch (spec.kind) {
    case SpecKind::kJson:
      return SchemaSymbol(front, ReadJson(spec.text, "schema"), front.schema);
    case SpecKind::kRegex:
      return RegexSymbol(front, spec.text);
    case SpecKind::kChoice:
      return ChoiceSymbol(front, spec.choices);
    case SpecKind::kGrammar:
      return GrammarSymbol(front, spec.text, DialectOf(spec.text));
    case SpecKind::kStructuralTag:
      return StructuralTagSymbol(front, spec.text);
  }
  return 0;
}

std::shared_ptr<Constraint> CompileConstraint(const Spec& spec, std::shared_ptr<const Vocabulary> vocabulary,
                                              const volatile int32_t* cancelled, uint64_t work) {
  auto grammar = std::make_shared<Grammar>();
  grammar->regex().budget().Watch(cancelled, work);
  FrontEnd front{*grammar, *vocabulary, spec.schema, {}};
  const Symbol start = Run(front, spec);
  auto made = std::make_shared<Constraint>(vocabulary, grammar, start, std::move(front.warnings));
  if (!made->IsSatisfiable()) throw Failure("INVALID_REQUEST", "nothing can be generated under this constraint");
  const Budget& budget = grammar->regex().budget();
  if (budget.was_cut(Phase::kCompile) || budget.was_cut(Phase::kClosure))
    throw Failure("UNSUPPORTED", "the constraint is too complex to enforce");
  grammar->regex().budget().Unwatch();
  grammar->regex().Bind();
  return made;
}

}  // namespace onpolicy::grammar
