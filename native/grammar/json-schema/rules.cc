// Values of any type.
#include "grammar/json-schema/rules.h"

#include "base/spec-error.h"

namespace onpolicy::grammar {

SchemaRules::SchemaRules(Grammar& grammar, JsonValue schema, const SchemaOptions& options)
    : context_(grammar, std::move(schema), options), objects_(context_, *this), arrays_(context_, *this) {
  if (options.tags) tags_.emplace(context_, *this, *options.tags);
}

Symbol SchemaRules::Root() {
  const FormulaId root = context_.compiler.Compile();
  // A large schema gets a higher limit, because size alone does not mean many combinations.
  context_.pool.budget().Begin(Phase::kShapes, limits::kShapeWork + limits::kFormulaShapeWork * context_.formulas.size());
  if (context_.shapes.IsEmpty(root)) throw SpecError("INVALID_REQUEST", "#", "no value satisfies this schema");
  context_.shapes.Explore(root);
  if (context_.pool.budget().was_cut(Phase::kCompile))
    throw SpecError("UNSUPPORTED", "#", "the schema's patterns are too complex to enforce together");
  return tags_ ? tags_->Root(root) : Value(root);
}

Symbol SchemaRules::Value(FormulaId formula, SeenSet excluded) {
  return values_.Get({formula, excluded}, [&] {
    return context_.grammar.Rule([this, formula, excluded](Grammar&) { return Productions(formula, excluded); });
  });
}

std::vector<SequenceId> SchemaRules::Productions(FormulaId formula, SeenSet excluded) {
  RegexPool& pool = context_.pool;
  const SeenSet excluded_arrays = context_.seen.OfType(excluded, JsonValue::kArray);
  const SeenSet excluded_objects = context_.seen.OfType(excluded, JsonValue::kObject);
  std::vector<NodeId> scalars;
  std::vector<SequenceId> result;
  // Omits values that could be opened but never closed.
  const auto add = [&](NodeId open, Symbol body, const Shape& shape, SeenSet without) {
    if ((without == 0 && !shape.MayFail()) || !context_.grammar.IsEmptyRule(body)) result.push_back(context_.Sequence(open, {body}));
  };
  for (const Shape& shape : std::vector<Shape>(context_.shapes.Of(formula))) {
    if (context_.shapes.IsShapeEmpty(shape)) continue;
    switch (shape.type) {
      case kNullType:
        scalars.push_back(pool.Literal("null"));
        break;
      case kBoolType:
        if (shape.bools & 1) scalars.push_back(pool.Literal("false"));
        if (shape.bools & 2) scalars.push_back(pool.Literal("true"));
        break;
      case kNumberType:
        scalars.push_back(shape.text == kAnyText ? context_.values.numbers().Any() : shape.text);
        break;
      case kStringType: {
        // A restriction of strings is already a language of JSON text.
        const NodeId text = shape.text == kAnyText ? context_.values.free_text().AnyText() : shape.text;
        scalars.push_back(pool.Concat({context_.marks.quote, text, context_.marks.quote}));
        break;
      }
      case kArrayType:
        add(context_.marks.open_array, arrays_.Body(shape, excluded_arrays), shape, excluded_arrays);
        break;
      case kObjectType:
        add(context_.marks.open_object, objects_.Body(shape, excluded_objects), shape, excluded_objects);
        break;
    }
  }
  const NodeId scalar = pool.Alternate(std::move(scalars));
  if (pool.IsLive(scalar)) result.push_back(context_.Sequence(scalar));
  return result;
}

}  // namespace onpolicy::grammar
