// Normalization: intersects conjunctions, unites disjunctions, and moves negations down to the atoms.
#include "grammar/json-schema/shapes/shape.h"

#include <algorithm>
#include <map>

#include "base/limits.h"

namespace onpolicy::grammar {

// Work counted for one formula.
static constexpr uint64_t kNormalizeWork = 100;
// With more alternatives than this, those without values are dropped.
static constexpr size_t kFewShapes = 16;

// Thrown if combinations multiply beyond the limits. The error names the first formula with a known place that it passes.
struct TooManyCombinations {};

const std::vector<Shape>& ShapeTable::Of(FormulaId formula) {
  const auto& memo = evaluating_ ? evaluating_memo_ : memo_;
  if (const auto it = memo.find(formula); it != memo.end()) return it->second;
  // A formula that depends on itself adds no shapes: the least solution.
  static const std::vector<Shape> none;
  if (!running_.insert(formula).second) {
    assumptions_.Add({.running = true});
    return none;
  }
  if (running_.size() == 1) work_ = 0;
  const InProgress running{running_, formula};
  std::vector<Shape> shapes;
  bool is_provisional = false;
  try {
    is_provisional = assumptions_.AssumesRunning([&] { shapes = Tidy(Normalize(formula)); }) && running_.size() > 1;
  } catch (const TooManyCombinations&) {
    if (fallbacks_ > 0) throw;
    const std::string* pointer = formulas_.PointerOf(formula);
    if (!pointer && running_.size() > 1) throw;
    throw UnenforceableSchema(pointer ? *pointer : "#");
  }
  assumptions_.Add({.running = is_provisional});
  if (is_provisional) return provisional_.emplace_back(std::move(shapes));
  return (evaluating_ ? evaluating_memo_ : memo_)[formula] = std::move(shapes);
}

void ShapeTable::Explore(FormulaId root) {
  std::set<FormulaId> seen{root};
  std::vector<FormulaId> open{root};
  for (size_t i = 0; i < open.size() && i < limits::kExploredFormulas; i++)
    for (const Shape& shape : std::vector<Shape>(Of(open[i])))
      for (FormulaId child : parts_.Children(shape))
        if (seen.insert(child).second) open.push_back(child);
}

void ShapeTable::Spend() {
  pool_.budget().Spend(kNormalizeWork);
  if (++work_ > most_work_ || pool_.budget().IsSpent(Phase::kShapes)) throw TooManyCombinations();
}

bool ShapeTable::IsSurelyEmpty(FormulaId formula) {
  return assumptions_.IsSurely([&] { return IsEmpty(formula); });
}

std::vector<Shape> ShapeTable::Normalize(FormulaId id) {
  const Formula formula = formulas_[id];
  Spend();
  switch (formula.kind) {
    case Formula::kFalse:
      return {};
    case Formula::kTrue:
      return AllShapes();
    case Formula::kReference:
      return Of(compiler_.Target(formula.index));
    case Formula::kNot:
      return NormalizeNot(formula.parts[0]);
    case Formula::kUnevaluated:
      return NormalizeUnevaluated(formula);
    case Formula::kAtom:
      return NormalizeAnd({id});
    case Formula::kAnd:
      return NormalizeAnd(formula.parts);
    case Formula::kOr:
      return NormalizeOr(formula.parts);
    case Formula::kOneOf:
      return NormalizeOneOfOrAnyOf(id, formula.parts);
  }
  return {};
}

std::vector<Shape> ShapeTable::NormalizeAnd(const std::vector<FormulaId>& parts) {
  std::vector<Shape> shapes = AllShapes();
  for (FormulaId part : parts)
    if (formulas_[part].kind == Formula::kAtom) {
      const uint32_t atom = formulas_[part].index;
      std::erase_if(shapes, [&](Shape& shape) { return !Apply(atom, &shape); });
    }
  for (FormulaId part : parts) {
    if (shapes.empty()) break;
    if (formulas_[part].kind == Formula::kAtom) continue;
    if (formulas_[part].kind == Formula::kNot) part = WithoutDisjoint(part, parts);
    shapes = Intersect(shapes, std::vector<Shape>(Of(part)));
  }
  return shapes;
}

std::vector<Shape> ShapeTable::Union(const std::vector<FormulaId>& formulas) {
  std::vector<Shape> shapes;
  for (FormulaId formula : formulas) {
    const std::vector<Shape>& more = Of(formula);
    shapes.insert(shapes.end(), more.begin(), more.end());
  }
  return shapes;
}

std::vector<Shape> ShapeTable::NormalizeOr(const std::vector<FormulaId>& parts) {
  if (!evaluating_ || parts.size() > limits::kEvaluatedBranches) return Union(parts);
  std::vector<Shape> shapes;
  for (size_t set = 1; set < (size_t{1} << parts.size()); set++) {
    std::vector<Shape> both = AllShapes();
    for (size_t i = 0; i < parts.size(); i++)
      if ((set >> i) & 1) both = Intersect(both, std::vector<Shape>(Of(parts[i])));
    shapes.insert(shapes.end(), both.begin(), both.end());
  }
  return shapes;
}

std::vector<Shape> ShapeTable::NormalizeOneOf(const std::vector<FormulaId>& parts) {
  std::vector<FormulaId> options;
  for (size_t i = 0; i < parts.size(); i++) {
    std::vector<FormulaId> conjunction{parts[i]};
    for (size_t k = 0; k < parts.size(); k++)
      if (k != i && (parts[k] == parts[i] || !IsSurelyEmpty(formulas_.And({parts[i], parts[k]}))))
        conjunction.push_back(formulas_.Not(parts[k]));
    options.push_back(formulas_.And(std::move(conjunction)));
  }
  return Union(options);
}

std::vector<Shape> ShapeTable::NormalizeOneOfOrAnyOf(FormulaId id, const std::vector<FormulaId>& parts) {
  if (compiler_.options().reads_any_of) return NormalizeOr(parts);
  if (compiler_.options().refuse_unknown) return NormalizeOneOf(parts);
  if (!relaxed_.contains(id)) {
    try {
      const ScopedValue<int> fallback(fallbacks_, fallbacks_ + 1);
      const ScopedValue<size_t> most(most_work_, std::min(most_work_, work_ + limits::kOneOfSteps));
      return Tidy(NormalizeOneOf(parts));
    } catch (const TooManyCombinations&) {
      if (work_ > most_work_ || pool_.budget().IsSpent(Phase::kShapes)) throw;
    }
    relaxed_.insert(id);
    const std::string* pointer = formulas_.PointerOf(id);
    compiler_.warnings().push_back(
        {(pointer ? *pointer : "#") + ": the combinations of oneOf are too many to enforce, it reads as anyOf", true});
  }
  return NormalizeOr(parts);
}

// Returns a negated choice beside other restrictions, without the branches that no value of those satisfies. Each remaining branch
// multiplies the alternatives.
FormulaId ShapeTable::WithoutDisjoint(FormulaId negation, const std::vector<FormulaId>& conjunction) {
  FormulaId inner = formulas_[negation].parts[0];
  for (int steps = 0; formulas_[inner].kind == Formula::kReference && steps < limits::kReferenceChain; steps++)
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

// A formula under a negation restricts, but evaluates nothing.
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
      // Some key is not among those that pass.
      const NodeId others = pool_.And({compiler_.values().strict_text().AnyText(), pool_.Not(Names(formula.index))});
      return Of(formulas_.And({formulas_.Types(kObjectType), formulas_.AtomOf({.kind = Atom::kSomeMember, .node = others})}));
    }
    case Formula::kAnd:
      return Union(NegatedParts(formulas_, formula.parts));
    case Formula::kOr: {
      std::vector<Shape> shapes = AllShapes();
      for (FormulaId part : formula.parts) {
        if (shapes.empty()) break;
        // As in WithoutDisjoint, so that values have the same spelling with and without other restrictions.
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

// Returns the demand on members that no evaluated atom names; an atom without a rest if one names all members.
static Atom UnevaluatedMembers(FormulaTable& formulas, const Shape& shape, FormulaId rest) {
  Atom atom{.kind = Atom::kMembers, .any_order = true, .rest = rest, .has_rest = true};
  for (uint32_t index : shape.members) {
    const Atom& evaluated = formulas.atom(index);
    if (!evaluated.evaluates) continue;
    if (evaluated.has_rest) return {};
    for (const auto& [key, value] : evaluated.properties) atom.properties.push_back({key, kTrueFormula});
    for (const auto& [node, value] : evaluated.patterns) atom.patterns.push_back({node, kTrueFormula});
  }
  return atom;
}

// Returns the same for items.
static Atom UnevaluatedItems(FormulaTable& formulas, const Shape& shape, FormulaId rest) {
  size_t prefix = 0;
  for (uint32_t index : shape.items) {
    if (!formulas.atom(index).evaluates) continue;
    if (formulas.atom(index).has_rest) return {};
    prefix = std::max(prefix, formulas.atom(index).prefix.size());
  }
  std::vector<FormulaId> options{rest};
  for (uint32_t index : shape.some)
    if (formulas.atom(index).counts_evaluation && formulas.atom(index).evaluates)
      options.push_back(formulas.atom(index).formula);
  Atom atom{.kind = Atom::kItems, .rest = formulas.Or(std::move(options)), .has_rest = true};
  atom.prefix.assign(prefix, kTrueFormula);
  return atom;
}

std::vector<Shape> ShapeTable::NormalizeUnevaluated(const Formula& formula) {
  std::vector<Shape> shapes;
  {
    const ScopedValue<bool> evaluating(evaluating_, true);
    shapes = Of(formula.parts[0]);
  }
  for (Shape& shape : shapes) {
    Atom atom;
    if (shape.type == kObjectType && formula.has_members) {
      atom = UnevaluatedMembers(formulas_, shape, formula.members);
    } else if (shape.type == kArrayType && formula.has_items) {
      atom = UnevaluatedItems(formulas_, shape, formula.items);
    }
    // There is no demand if another atom evaluates the rest.
    if (atom.has_rest) Apply(formulas_[formulas_.AtomOf(std::move(atom))].index, &shape);
  }
  return shapes;
}

std::vector<Shape> ShapeTable::Intersect(const std::vector<Shape>& left, const std::vector<Shape>& right) {
  std::vector<Shape> result;
  for (const Shape& a : left)
    for (const Shape& b : right) {
      if (a.type != b.type) continue;
      Spend();
      Shape both = a;
      Meet(pool_, b, &both);
      if (IsPossible(both)) result.push_back(std::move(both));
    }
  if (result.size() > kFewShapes)
    std::erase_if(result, [&](const Shape& shape) { return assumptions_.IsSurely([&] { return IsShapeEmpty(shape); }); });
  return Tidy(std::move(result));
}

// Narrows a shape by an atom. Returns false if no value is left.
bool ShapeTable::Apply(uint32_t index, Shape* shape) {
  const Atom& atom = formulas_.atom(index);
  if (atom.kind == Atom::kMemberNames) {
    if (shape->type == kObjectType) shape->names.push_back(Names(index));
  } else if (atom.kind != Atom::kSomeItems || evaluating_ || atom.min > 0 || atom.max != UINT64_MAX) {
    // An atom that demands nothing only records which items count as evaluated.
    if (!Narrow(pool_, atom, index, shape)) return false;
  }
  return IsPossible(*shape);
}

// Returns the keys that a propertyNames schema allows.
NodeId ShapeTable::Names(uint32_t index) {
  if (const auto it = names_memo_.find(index); it != names_memo_.end()) return it->second;
  std::vector<NodeId> options;
  const ScopedValue<bool> plain = WithoutEvaluation();
  for (const Shape& shape : std::vector<Shape>(Of(formulas_.atom(index).formula)))
    if (shape.type == kStringType) options.push_back(pool_.And({compiler_.values().strict_text().AnyText(), shape.text}));
  return names_memo_[index] = pool_.Alternate(std::move(options));
}

bool ShapeTable::IsPossible(const Shape& shape) {
  if (shape.min > shape.max) return false;
  if (shape.type == kBoolType) return shape.bools != 0;
  if ((shape.type == kNumberType || shape.type == kStringType) && !pool_.IsLive(shape.text)) return false;
  return shape.required.size() <= shape.max;
}

// Unites scalar shapes of a type, and drops shapes that others cover.
std::vector<Shape> ShapeTable::Tidy(std::vector<Shape> shapes) {
  // Texts of numbers and strings are united at once at the end: each union sorts all of its options.
  std::map<unsigned, std::vector<NodeId>> texts;
  // Widens `other` by the shape. Returns false if they cannot be united.
  const auto unite = [&](Shape* other, const Shape& shape) {
    if (other->type != shape.type) return false;
    if (shape.type == kBoolType) {
      other->bools |= shape.bools;
    } else if (shape.type == kArrayType || shape.type == kObjectType) {
      // The shapes may differ in what counts as evaluated.
      return shape == *other || (!evaluating_ && Covers(*other, shape));
    }
    return true;
  };
  std::vector<Shape> result;
  for (Shape& shape : shapes) {
    if (!IsPossible(shape)) continue;
    if (shape.type == kNumberType || shape.type == kStringType) texts[shape.type].push_back(shape.text);
    if (std::any_of(result.begin(), result.end(), [&](Shape& other) { return unite(&other, shape); })) continue;
    if (!evaluating_ && (shape.type == kArrayType || shape.type == kObjectType))
      std::erase_if(result, [&](const Shape& other) { return Covers(shape, other); });
    result.push_back(std::move(shape));
    if (result.size() > limits::kShapes) throw TooManyCombinations();
  }
  for (Shape& shape : result)
    if (const auto found = texts.find(shape.type); found != texts.end()) shape.text = pool_.Alternate(std::move(found->second));
  return result;
}

}  // namespace onpolicy::grammar
