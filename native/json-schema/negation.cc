// Negations of formulas as shapes: down to the atoms.
#include "base/spec-error.h"
#include "json-schema/shape.h"

namespace onpolicy::grammar {

// A reference to a reference is followed so often.
static constexpr int kMaxReferences = 20;

// A negated choice beside other restrictions: without the branches that no value of those satisfies anyway. Each branch
// that stays multiplies the alternatives.
FormulaId ShapeTable::WithoutDisjoint(FormulaId negation, const std::vector<FormulaId>& conjunction) {
  FormulaId inner = formulas_[negation].parts[0];
  for (int steps = 0; formulas_[inner].kind == Formula::kReference && steps < kMaxReferences; steps++)
    inner = compiler_.Target(formulas_[inner].index);
  const Formula choice = formulas_[inner];
  if (choice.kind != Formula::kOr && choice.kind != Formula::kOneOf) return negation;
  std::vector<FormulaId> others;
  for (FormulaId part : conjunction)
    if (formulas_[part].kind != Formula::kNot) others.push_back(part);
  if (others.empty()) return negation;
  std::vector<FormulaId> kept;
  for (FormulaId branch : choice.parts) {
    std::vector<FormulaId> both = others;
    both.push_back(branch);
    if (!IsSurelyEmpty(formulas_.And(both))) kept.push_back(branch);
  }
  if (kept.size() == choice.parts.size()) return negation;
  if (kept.empty()) return kTrueFormula;
  return formulas_.Not(choice.kind == Formula::kOr ? formulas_.Or(std::move(kept)) : formulas_.OneOf(kept));
}

// What stands under a negation restricts, but evaluates nothing.
std::vector<Shape> ShapeTable::NormalizeNot(FormulaId inner) {
  const Formula formula = formulas_[inner];
  if (!evaluating_) return NormalizeNegated(formula);
  const ScopedValue<bool> plain = WithoutEvaluation();
  std::vector<Shape> shapes = Tidy(NormalizeNegated(formula));
  for (Shape& shape : shapes)
    for (std::vector<uint32_t>* atoms : {&shape.members, &shape.items, &shape.some})
      for (uint32_t& atom : *atoms) atom = formulas_.Unannotated(atom);
  return shapes;
}

std::vector<Shape> ShapeTable::NormalizeNegated(const Formula& formula) {
  switch (formula.kind) {
    case Formula::kFalse:
      return AllShapes();
    case Formula::kTrue:
      return {};
    case Formula::kNot:
      return Of(formula.parts[0]);
    case Formula::kReference:
      return Of(formulas_.Not(compiler_.Target(formula.index)));
    case Formula::kUnevaluated:
      throw SpecError("UNSUPPORTED", "#", "unevaluatedProperties or unevaluatedItems cannot be enforced under a negation");
    case Formula::kAtom: {
      if (formulas_.atom(formula.index).kind != Atom::kMemberNames) return Of(NegatedAtom(formulas_, formula.index));
      // Some key is none of those that pass.
      const NodeId others = pool_.And({compiler_.values().strict_text().AnyText(), pool_.Not(Names(formula.index))});
      return Of(formulas_.And({formulas_.Types(kObjectType), formulas_.AtomOf({.kind = Atom::kSomeMember, .node = others})}));
    }
    case Formula::kAnd:
      return Union(NegatedParts(formulas_, formula.parts));
    case Formula::kOr: {
      std::vector<Shape> shapes = AllShapes();
      for (FormulaId part : formula.parts) {
        if (shapes.empty()) break;
        // As in WithoutDisjoint, so that values are spelled alike with and without other restrictions.
        if (!IsSurelyEmpty(part)) shapes = Intersect(shapes, std::vector<Shape>(Of(formulas_.Not(part))));
      }
      return shapes;
    }
    case Formula::kOneOf: {
      std::vector<FormulaId> none, options;
      for (size_t i = 0; i < formula.parts.size(); i++) {
        none.push_back(formulas_.Not(formula.parts[i]));
        for (size_t k = i + 1; k < formula.parts.size(); k++)
          options.push_back(formulas_.And({formula.parts[i], formula.parts[k]}));
      }
      options.push_back(formulas_.And(std::move(none)));
      return Of(formulas_.Or(std::move(options)));
    }
  }
  return {};
}

}  // namespace onpolicy::grammar
