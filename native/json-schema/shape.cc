// Normalisation: conjunctions meet, disjunctions add up, negations go down to the atoms.
#include "json-schema/shape.h"

#include <algorithm>

#include "base/scoped-value.h"
#include "base/spec-error.h"

namespace onpolicy::grammar {

static constexpr size_t kMaxShapes = 600;
static constexpr size_t kMaxWork = 400000;
// What the automata of a schema may cost until it is compiled: about half a second.
static constexpr uint64_t kMaxCompileWork = 50'000'000;
// What one of them counts as work of a step.
static constexpr uint64_t kNormalizeWork = 100;
// More alternatives than this are looked at one by one: those that no value satisfies are left out.
static constexpr size_t kFewShapes = 16;

// Thrown where combinations multiply beyond the limits; where it passes a formula of a known place, that is named.
struct TooManyCombinations {};

std::vector<Shape> ShapeTable::AllShapes() {
  std::vector<Shape> shapes;
  for (unsigned type = 1; type <= kAllTypes; type <<= 1) {
    Shape shape;
    shape.type = type;
    shapes.push_back(shape);
  }
  return shapes;
}

const std::vector<Shape>& ShapeTable::Of(FormulaId formula) {
  auto& memo = annotating_ ? annotated_memo_ : memo_;
  auto it = memo.find(formula);
  if (it != memo.end()) return it->second;
  // A formula that is needed to find itself adds nothing: the least solution.
  static const std::vector<Shape> none;
  if (!running_.insert(formula).second) {
    leans_.on_running = true;
    return none;
  }
  if (running_.size() == 1) work_ = 0;
  const bool outer = std::exchange(leans_.on_running, false);
  std::vector<Shape> shapes;
  try {
    shapes = Tidy(Normalize(formula));
  } catch (const TooManyCombinations&) {
    running_.erase(formula);
    const std::string* pointer = formulas_.PointerOf(formula);
    if (!pointer && !running_.empty()) throw;
    throw SpecError("UNSUPPORTED", pointer ? *pointer : "#", "the schema's combinations are too many to enforce");
  } catch (...) {
    running_.erase(formula);
    throw;
  }
  running_.erase(formula);
  const bool provisional = leans_.on_running && !running_.empty();
  leans_.on_running = outer || provisional;
  if (provisional) return provisional_.emplace_back(std::move(shapes));
  return (annotating_ ? annotated_memo_ : memo_)[formula] = std::move(shapes);
}

void ShapeTable::Spend() {
  pool().Charge(kNormalizeWork);
  const bool is_long = !pool().IsBound() && pool().work() > kMaxCompileWork;
  if (++work_ > kMaxWork || is_long) throw TooManyCombinations();
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
    case Formula::kNot: {
      if (!annotating_) return NormalizeNot(formula.parts[0]);
      // What stands under a negation restricts, but evaluates nothing.
      const ScopedValue<bool> annotating(annotating_, false);
      std::vector<Shape> shapes = Tidy(NormalizeNot(formula.parts[0]));
      for (Shape& shape : shapes) {
        for (uint32_t& atom : shape.members) atom = formulas_.Unannotated(atom);
        for (uint32_t& atom : shape.items) atom = formulas_.Unannotated(atom);
        for (uint32_t& atom : shape.some) atom = formulas_.Unannotated(atom);
      }
      return shapes;
    }
    case Formula::kUnevaluated:
      return NormalizeUnevaluated(formula);
    case Formula::kAtom: {
      std::vector<Shape> shapes = AllShapes();
      std::erase_if(shapes, [&](Shape& shape) { return !Apply(formula.index, &shape); });
      return shapes;
    }
    case Formula::kAnd: {
      std::vector<Shape> shapes = AllShapes();
      for (FormulaId part : formula.parts)
        if (formulas_[part].kind == Formula::kAtom) {
          const uint32_t atom = formulas_[part].index;
          std::erase_if(shapes, [&](Shape& shape) { return !Apply(atom, &shape); });
        }
      for (FormulaId part : formula.parts) {
        if (shapes.empty()) break;
        if (formulas_[part].kind == Formula::kAtom) continue;
        if (formulas_[part].kind == Formula::kNot) part = WithoutDisjoint(part, formula.parts);
        shapes = Intersect(shapes, std::vector<Shape>(Of(part)));
      }
      return shapes;
    }
    case Formula::kOr: {
      std::vector<Shape> shapes;
      const size_t count = formula.parts.size();
      if (annotating_ && count > 1 && count <= 5) {
        // Which branches hold decides what counts as evaluated: every set of branches is a case of its own.
        for (size_t set = 1; set < (size_t{1} << count); set++) {
          std::vector<Shape> both = AllShapes();
          for (size_t i = 0; i < count; i++)
            if ((set >> i) & 1) both = Intersect(both, std::vector<Shape>(Of(formula.parts[i])));
          shapes.insert(shapes.end(), both.begin(), both.end());
        }
        return shapes;
      }
      for (FormulaId part : formula.parts) {
        const std::vector<Shape>& more = Of(part);
        shapes.insert(shapes.end(), more.begin(), more.end());
      }
      return shapes;
    }
    case Formula::kOneOf: {
      std::vector<Shape> shapes;
      for (size_t i = 0; i < formula.parts.size(); i++) {
        std::vector<FormulaId> conjunction{formula.parts[i]};
        for (size_t k = 0; k < formula.parts.size(); k++)
          if (k != i && (formula.parts[k] == formula.parts[i] ||
                         !IsSurely([&] { return IsEmpty(formulas_.And({formula.parts[i], formula.parts[k]})); })))
            conjunction.push_back(formulas_.Not(formula.parts[k]));
        const std::vector<Shape>& more = Of(formulas_.And(std::move(conjunction)));
        shapes.insert(shapes.end(), more.begin(), more.end());
      }
      return shapes;
    }
  }
  return {};
}

std::vector<Shape> ShapeTable::NormalizeUnevaluated(const Formula& formula) {
  std::vector<Shape> shapes;
  {
    const ScopedValue<bool> annotating(annotating_, true);
    shapes = Of(formula.parts[0]);
  }
  for (Shape& shape : shapes) {
    if (shape.type == kObjectType && formula.has_members) {
      Atom atom;
      atom.kind = Atom::kMembers;
      atom.rest = formula.members;
      atom.has_rest = true;
      atom.any_order = true;
      bool all = false;
      for (uint32_t index : shape.members) {
        const Atom& evaluated = formulas_.atom(index);
        if (!evaluated.evaluates) continue;
        all = all || evaluated.has_rest;
        for (const auto& [key, value] : evaluated.properties) atom.properties.push_back({key, kTrueFormula});
        for (const auto& [node, value] : evaluated.patterns) atom.patterns.push_back({node, kTrueFormula});
      }
      if (!all) {
        const FormulaId added = formulas_.AtomOf(std::move(atom));
        Apply(formulas_[added].index, &shape);
      }
    }
    if (shape.type == kArrayType && formula.has_items) {
      Atom atom;
      atom.kind = Atom::kItems;
      atom.rest = formula.items;
      atom.has_rest = true;
      bool all = false;
      size_t prefix = 0;
      for (uint32_t index : shape.items) {
        if (!formulas_.atom(index).evaluates) continue;
        all = all || formulas_.atom(index).has_rest;
        prefix = std::max(prefix, formulas_.atom(index).prefix.size());
      }
      std::vector<FormulaId> options{atom.rest};
      for (uint32_t index : shape.some)
        if (formulas_.atom(index).counts_evaluation && formulas_.atom(index).evaluates) options.push_back(formulas_.atom(index).formula);
      atom.rest = formulas_.Or(std::move(options));
      atom.prefix.assign(prefix, kTrueFormula);
      if (!all) {
        const FormulaId added = formulas_.AtomOf(std::move(atom));
        Apply(formulas_[added].index, &shape);
      }
    }
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
      Meet(pool(), b, &both);
      if (IsPossible(both)) result.push_back(std::move(both));
    }
  if (result.size() > kFewShapes)
    std::erase_if(result, [&](const Shape& shape) { return IsSurely([&] { return IsShapeEmpty(shape); }); });
  return Tidy(std::move(result));
}

// Narrows a shape by an atom. False when nothing is left.
bool ShapeTable::Apply(uint32_t index, Shape* shape) {
  const Atom& atom = formulas_.atom(index);
  if (atom.kind == Atom::kMemberNames) {
    if (shape->type == kObjectType) shape->names.push_back(Names(index));
  } else if (atom.kind != Atom::kSomeItems || annotating_ || atom.min > 0 || atom.max != UINT64_MAX) {
    // One that demands nothing only tells which items count as evaluated.
    if (!Narrow(pool(), atom, index, shape)) return false;
  }
  return IsPossible(*shape);
}

// The keys that a propertyNames schema lets through.
NodeId ShapeTable::Names(uint32_t index) {
  auto it = names_memo_.find(index);
  if (it != names_memo_.end()) return it->second;
  std::vector<NodeId> options;
  const ScopedValue<bool> annotating(annotating_, false);
  for (const Shape& shape : std::vector<Shape>(Of(formulas_.atom(index).formula)))
    if (shape.type == kStringType)
      options.push_back(pool().And({compiler_.values().strict_text().AnyText(), shape.text}));
  return names_memo_[index] = pool().Alternate(std::move(options));
}

bool ShapeTable::IsPossible(const Shape& shape) {
  if (shape.min > shape.max) return false;
  if (shape.type == kBoolType) return shape.bools != 0;
  if (shape.type == kNumberType || shape.type == kStringType) {
    if (!pool().IsLive(shape.text)) return false;
  }
  return shape.required.size() <= shape.max;
}

// Unites scalar shapes of a type, and drops repeated ones.
std::vector<Shape> ShapeTable::Tidy(std::vector<Shape> shapes) {
  std::vector<Shape> result;
  for (Shape& shape : shapes) {
    if (!IsPossible(shape)) continue;
    bool merged = false;
    for (Shape& other : result) {
      if (other.type != shape.type) continue;
      if (shape.type == kNullType || shape == other) {
        merged = true;
      } else if (shape.type == kBoolType) {
        other.bools |= shape.bools;
        merged = true;
      } else if (shape.type == kNumberType || shape.type == kStringType) {
        other.text = pool().Alternate({other.text, shape.text});
        merged = true;
      }
      if (merged) break;
    }
    if (!merged) result.push_back(std::move(shape));
    if (result.size() > kMaxShapes) throw TooManyCombinations();
  }
  return result;
}

}  // namespace onpolicy::grammar
