// Normalisation: conjunctions meet, disjunctions add up, negations go down to the atoms.
#include "grammar/schema-shape.h"

#include <algorithm>

#include "grammar/schema-error.h"

namespace onpolicy::grammar {

static constexpr size_t kMaxShapes = 600;
static constexpr size_t kMaxWork = 400000;
// More alternatives than this are looked at one by one: those that no value satisfies are left out.
static constexpr size_t kFewShapes = 16;
static constexpr uint64_t kManyValues = 1000;
static constexpr int kMaxCountDepth = 8;
// So many formulas are looked at before the first document.
static constexpr size_t kMaxExplored = 3000;

// Thrown where combinations multiply beyond the limits; where it passes a formula of a known place, that is named.
struct TooManyCombinations {};

static std::vector<Shape> AllShapes() {
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
    met_running_ = true;
    return none;
  }
  if (running_.size() == 1) work_ = 0;
  const bool outer_met = met_running_;
  met_running_ = false;
  std::vector<Shape> shapes;
  try {
    shapes = Tidy(Normalize(formula));
  } catch (const TooManyCombinations&) {
    running_.erase(formula);
    const std::string* pointer = formulas_.PointerOf(formula);
    if (!pointer && !running_.empty()) throw;
    throw SchemaError("UNSUPPORTED", pointer ? *pointer : "#", "the schema's combinations are too many to enforce");
  } catch (...) {
    running_.erase(formula);
    throw;
  }
  running_.erase(formula);
  const bool provisional = met_running_ && !running_.empty();
  met_running_ = outer_met || provisional;
  if (provisional) return provisional_.emplace_back(std::move(shapes));
  return (annotating_ ? annotated_memo_ : memo_)[formula] = std::move(shapes);
}

void ShapeTable::Spend() {
  if (++work_ > kMaxWork) throw TooManyCombinations();
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
      annotating_ = false;
      std::vector<Shape> shapes;
      try {
        shapes = Tidy(NormalizeNot(formula.parts[0]));
      } catch (...) {
        annotating_ = true;
        throw;
      }
      annotating_ = true;
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
        if (formulas_[part].kind != Formula::kAtom) shapes = Intersect(shapes, std::vector<Shape>(Of(part)));
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

std::vector<Shape> ShapeTable::NormalizeNot(FormulaId inner) {
  const Formula formula = formulas_[inner];
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
      throw SchemaError("UNSUPPORTED", "#", "unevaluatedProperties or unevaluatedItems cannot be enforced under a negation");
    case Formula::kAtom:
      if (formulas_.atom(formula.index).kind == Atom::kMemberNames) Names(formula.index);
      if (formulas_.atom(formula.index).kind == Atom::kMemberNames) {
        // The keys that the atom forbids, from those it allows.
        Atom some;
        some.kind = Atom::kSomeMember;
        some.node = pool().And({compiler_.strict_text().AnyText(), pool().Not(Names(formula.index))});
        return Of(formulas_.And({formulas_.Types(kObjectType), formulas_.AtomOf(std::move(some))}));
      }
      return Of(formulas_.NegatedAtom(formula.index));
    case Formula::kAnd: {
      std::vector<Shape> shapes;
      for (FormulaId option : formulas_.NegatedParts(formula.parts)) {
        const std::vector<Shape>& more = Of(option);
        shapes.insert(shapes.end(), more.begin(), more.end());
      }
      return shapes;
    }
    case Formula::kOr: {
      std::vector<Shape> shapes = AllShapes();
      for (FormulaId part : formula.parts) {
        if (shapes.empty()) break;
        shapes = Intersect(shapes, std::vector<Shape>(Of(formulas_.Not(part))));
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

std::vector<Shape> ShapeTable::NormalizeUnevaluated(const Formula& formula) {
  const bool outer = annotating_;
  annotating_ = true;
  std::vector<Shape> shapes;
  try {
    shapes = Of(formula.parts[0]);
  } catch (...) {
    annotating_ = outer;
    throw;
  }
  annotating_ = outer;
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
      if (Meet(&both, b)) result.push_back(std::move(both));
    }
  if (result.size() > kFewShapes)
    std::erase_if(result, [&](const Shape& shape) { return IsSurely([&] { return IsShapeEmpty(shape); }); });
  return Tidy(std::move(result));
}

template <typename Ask>
bool ShapeTable::IsSurely(Ask ask) {
  const bool outer_met = met_running_, outer_assumed = assumed_;
  met_running_ = assumed_ = false;
  const bool answer = ask() && !met_running_ && !assumed_;
  met_running_ = outer_met || met_running_;
  assumed_ = outer_assumed;
  return answer;
}

static void AddUnique(std::vector<uint32_t>* list, uint32_t value) {
  if (std::find(list->begin(), list->end(), value) == list->end()) list->push_back(value);
}

bool ShapeTable::Meet(Shape* shape, const Shape& other) {
  shape->bools &= other.bools;
  shape->text = pool().And({shape->text, other.text});
  for (uint32_t atom : other.members) AddUnique(&shape->members, atom);
  shape->required.insert(other.required.begin(), other.required.end());
  for (NodeId names : other.names)
    if (std::find(shape->names.begin(), shape->names.end(), names) == shape->names.end()) shape->names.push_back(names);
  for (uint32_t atom : other.some) AddUnique(&shape->some, atom);
  for (uint32_t atom : other.items) AddUnique(&shape->items, atom);
  shape->min = std::max(shape->min, other.min);
  shape->max = std::min(shape->max, other.max);
  shape->unique = shape->unique || other.unique;
  return IsPossible(*shape);
}

// Narrows a shape by an atom; atoms of other types leave it alone. False when nothing is left.
bool ShapeTable::Apply(uint32_t index, Shape* shape) {
  const Atom& atom = formulas_.atom(index);
  switch (atom.kind) {
    case Atom::kTypes:
      return atom.mask & shape->type;
    case Atom::kBool:
      if (shape->type == kBoolType) shape->bools &= atom.mask;
      break;
    case Atom::kNumber:
      if (shape->type == kNumberType) shape->text = pool().And({shape->text, atom.node});
      break;
    case Atom::kString:
      if (shape->type == kStringType) shape->text = pool().And({shape->text, atom.node});
      break;
    case Atom::kMembers:
      if (shape->type == kObjectType) AddUnique(&shape->members, index);
      break;
    case Atom::kRequired:
      if (shape->type == kObjectType) shape->required.insert(atom.key);
      break;
    case Atom::kMemberCount:
      if (shape->type == kObjectType) shape->min = std::max(shape->min, atom.min), shape->max = std::min(shape->max, atom.max);
      break;
    case Atom::kItemCount:
      if (shape->type == kArrayType) shape->min = std::max(shape->min, atom.min), shape->max = std::min(shape->max, atom.max);
      break;
    case Atom::kMemberNames:
      if (shape->type == kObjectType) shape->names.push_back(Names(index));
      break;
    case Atom::kSomeMember:
      if (shape->type == kObjectType) AddUnique(&shape->some, index);
      break;
    case Atom::kItems:
      if (shape->type == kArrayType) AddUnique(&shape->items, index);
      break;
    case Atom::kUnique:
      if (shape->type == kArrayType) shape->unique = true;
      break;
    case Atom::kSomeItems:
      // One that demands nothing still tells which items count as evaluated.
      if (shape->type == kArrayType && (annotating_ || atom.min > 0 || atom.max != UINT64_MAX)) AddUnique(&shape->some, index);
      break;
  }
  return IsPossible(*shape);
}

// The keys that a propertyNames schema lets through.
NodeId ShapeTable::Names(uint32_t index) {
  auto it = names_memo_.find(index);
  if (it != names_memo_.end()) return it->second;
  std::vector<NodeId> options;
  const bool outer = annotating_;
  annotating_ = false;
  for (const Shape& shape : std::vector<Shape>(Of(formulas_.atom(index).formula)))
    if (shape.type == kStringType)
      options.push_back(pool().And({compiler_.strict_text().AnyText(), shape.text}));
  annotating_ = outer;
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

bool ShapeTable::AllowsName(const Shape& shape, const std::string& key) {
  // Any spelling will do: a language holds all of them or none.
  return std::all_of(shape.names.begin(), shape.names.end(), [&](NodeId names) { return pool().Matches(names, EncodedKey(key)); });
}

std::string ShapeTable::EncodedKey(const std::string& key) const {
  std::string text;
  for (char c : key) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      text.push_back('\\');
      text.push_back(c);
    } else if (byte < 0x20) {
      const char* digits = "0123456789abcdef";
      text += "\\u00";
      text.push_back(digits[byte >> 4]);
      text.push_back(digits[byte & 15]);
    } else {
      text.push_back(c);
    }
  }
  return text;
}

FormulaId ShapeTable::MemberFormula(const Shape& shape, const std::string& key) {
  std::vector<FormulaId> parts;
  const std::string encoded = EncodedKey(key);
  for (uint32_t index : shape.members) {
    const Atom& atom = formulas_.atom(index);
    bool named = false;
    for (const auto& [name, value] : atom.properties)
      if (name == key) {
        parts.push_back(value);
        named = true;
      }
    for (const auto& [node, value] : atom.patterns)
      if (pool().Matches(node, encoded)) {
        parts.push_back(value);
        named = true;
      }
    if (!named) parts.push_back(atom.rest);
  }
  return formulas_.And(std::move(parts));
}

FormulaId ShapeTable::ItemFormula(const Shape& shape, size_t index) {
  std::vector<FormulaId> parts;
  for (uint32_t atom_index : shape.items) {
    const Atom& atom = formulas_.atom(atom_index);
    parts.push_back(index < atom.prefix.size() ? atom.prefix[index] : atom.rest);
  }
  return formulas_.And(std::move(parts));
}

size_t ShapeTable::PrefixLength(const Shape& shape) const {
  size_t length = 0;
  for (uint32_t atom : shape.items) length = std::max(length, formulas_.atom(atom).prefix.size());
  for (uint32_t atom : shape.some) length = std::max<size_t>(length, formulas_.atom(atom).mask);
  return length;
}

bool ShapeTable::IsEmpty(FormulaId formula) {
  auto known = empty_.find(formula);
  if (known != empty_.end()) return known->second;
  if (!checking_.insert(formula).second) {
    assumed_ = true;
    return true;
  }
  const bool outer_annotating = annotating_;
  annotating_ = false;
  const bool outer_assumed = assumed_, outer_met = met_running_;
  assumed_ = met_running_ = false;
  bool empty = true;
  for (const Shape& shape : std::vector<Shape>(Of(formula)))
    if (!IsShapeEmpty(shape)) {
      empty = false;
      break;
    }
  checking_.erase(formula);
  annotating_ = outer_annotating;
  if (!met_running_ && (!empty || !assumed_ || checking_.empty())) empty_[formula] = empty;
  met_running_ = met_running_ || outer_met;
  assumed_ = outer_assumed || (assumed_ && empty);
  return empty;
}

// Formulas that the members or items of a shape may have to satisfy.
std::vector<FormulaId> ShapeTable::Children(const Shape& shape) {
  std::vector<FormulaId> result;
  if (shape.type == kArrayType) {
    for (size_t i = 0; i <= PrefixLength(shape); i++) result.push_back(ItemFormula(shape, i));
  } else if (shape.type == kObjectType) {
    const bool is_single = shape.members.size() == 1 && formulas_.atom(shape.members[0]).patterns.empty();
    std::vector<FormulaId> rests;
    for (uint32_t index : shape.members) {
      const Atom& atom = formulas_.atom(index);
      rests.push_back(atom.rest);
      for (const auto& [key, value] : atom.properties) result.push_back(is_single ? value : MemberFormula(shape, key));
      for (const auto& [node, value] : atom.patterns) result.push_back(value);
    }
    result.push_back(formulas_.And(std::move(rests)));
  }
  const std::vector<FormulaId> values = shape.some.empty() ? std::vector<FormulaId>{} : result;
  for (uint32_t some : shape.some) {
    const FormulaId demand = formulas_.atom(some).formula;
    const bool is_limited = formulas_.atom(some).max != UINT64_MAX;
    for (FormulaId value : values) {
      result.push_back(formulas_.And({value, demand}));
      if (is_limited) result.push_back(formulas_.And({value, formulas_.Not(demand)}));
    }
  }
  return result;
}

void ShapeTable::Explore(FormulaId root) {
  std::set<FormulaId> seen{root};
  std::vector<FormulaId> open{root};
  for (size_t i = 0; i < open.size() && i < kMaxExplored; i++)
    for (const Shape& shape : std::vector<Shape>(Of(open[i])))
      for (FormulaId child : Children(shape))
        if (seen.insert(child).second) open.push_back(child);
}

uint64_t ShapeTable::CountValues(FormulaId formula, uint64_t cap) {
  auto known = counts_.find(formula);
  if (known != counts_.end()) return std::min(known->second, cap);
  if (counting_ > kMaxCountDepth) return cap;
  counting_++;
  uint64_t count = 0;
  for (const Shape& shape : std::vector<Shape>(Of(formula))) count = std::min(kManyValues, count + CountShape(shape));
  counting_--;
  // Deeper down, "many" may only mean that the depth was reached.
  if (counting_ == 0 || count < kManyValues) counts_[formula] = count;
  return std::min(count, cap);
}

uint64_t ShapeTable::CountShape(const Shape& shape) {
  const NumberLanguage& numbers = compiler_.numbers();
  if (IsShapeEmpty(shape)) return 0;
  if (shape.type == kNullType) return 1;
  if (shape.type == kBoolType) return (shape.bools & 1) + (shape.bools >> 1);
  if (shape.type == kStringType) return pool().CountTexts(shape.text, kManyValues);
  if (shape.type == kNumberType) {
    const NodeId text = shape.text == kAnyText ? numbers.Any() : shape.text;
    // "1" and "1.0" are one value.
    return pool().CountTexts(pool().And({text, numbers.Integer()}), kManyValues) +
           pool().CountTexts(pool().And({text, numbers.NotInteger()}), kManyValues);
  }
  if (!shape.some.empty() || !shape.names.empty() || shape.unique) return kManyValues;
  uint64_t count = 0;
  if (shape.type == kArrayType) {
    uint64_t ways = 1;
    for (size_t length = 0; length <= shape.max && count < kManyValues; length++) {
      if (length >= shape.min) count += ways;
      if (length == shape.max) break;
      ways = std::min(kManyValues, ways * CountValues(ItemFormula(shape, length), kManyValues));
      if (ways == 0) break;
    }
    return std::min(count, kManyValues);
  }
  // Objects are counted when only their keys and the values of those can differ.
  std::set<std::string> keys = shape.required;
  bool is_open = true;
  for (uint32_t index : shape.members) {
    const Atom& atom = formulas_.atom(index);
    if (!atom.patterns.empty()) return kManyValues;
    if (atom.rest == kFalseFormula) is_open = false;
    for (const auto& [key, value] : atom.properties) keys.insert(key);
  }
  if (is_open || shape.min > shape.required.size() || shape.max < keys.size()) return kManyValues;
  count = 1;
  for (const std::string& key : keys) {
    if (count >= kManyValues) break;
    const uint64_t ways = CountValues(MemberFormula(shape, key), kManyValues) + (shape.required.contains(key) ? 0 : 1);
    count = std::min(kManyValues, count * ways);
  }
  return count;
}

// Whether some member can have a key and a value of the demand.
bool ShapeTable::CanMeet(const Shape& shape, const Atom& given) {
  const Atom demand = given;
  std::set<std::string> known = shape.required;
  std::vector<NodeId> patterns;
  for (uint32_t index : shape.members) {
    for (const auto& [key, value] : formulas_.atom(index).properties) known.insert(key);
    for (const auto& [node, value] : formulas_.atom(index).patterns) patterns.push_back(node);
  }
  std::vector<NodeId> texts;
  for (const std::string& key : known) {
    texts.push_back(KeyNode(key));
    if (pool().IsLive(pool().And({demand.node, texts.back()})) && AllowsName(shape, key) &&
        !IsEmpty(formulas_.And({MemberFormula(shape, key), demand.formula})))
      return true;
  }
  std::vector<NodeId> base{compiler_.strict_text().AnyText(), demand.node, pool().Not(pool().Alternate(std::move(texts)))};
  base.insert(base.end(), shape.names.begin(), shape.names.end());
  // Further keys, by the set of patterns that they match.
  struct Open {
    size_t at;
    NodeId keys;
    std::set<NodeId> matched;
  };
  std::vector<Open> open{{0, pool().And(std::move(base)), {}}};
  for (size_t steps = 0; !open.empty() && steps < 600; steps++) {
    Open entry = std::move(open.back());
    open.pop_back();
    if (!pool().IsLive(entry.keys)) continue;
    if (entry.at < patterns.size()) {
      const NodeId pattern = patterns[entry.at++];
      Open with = entry;
      with.keys = pool().And({entry.keys, pattern});
      with.matched.insert(pattern);
      entry.keys = pool().And({entry.keys, pool().Not(pattern)});
      open.push_back(std::move(with));
      open.push_back(std::move(entry));
      continue;
    }
    std::vector<FormulaId> parts{demand.formula};
    for (uint32_t index : shape.members) {
      const Atom& atom = formulas_.atom(index);
      bool named = false;
      for (const auto& [node, value] : atom.patterns)
        if (entry.matched.contains(node)) {
          parts.push_back(value);
          named = true;
        }
      if (!named) parts.push_back(atom.rest);
    }
    if (!IsEmpty(formulas_.And(std::move(parts)))) return true;
  }
  return false;
}

bool ShapeTable::IsShapeEmpty(const Shape& shape) {
  if (!IsPossible(shape)) return true;
  if (shape.type == kObjectType) {
    for (const std::string& key : shape.required)
      if (!AllowsName(shape, key) || IsEmpty(MemberFormula(shape, key))) return true;
    for (uint32_t some : shape.some)
      if (shape.max == 0 || !CanMeet(shape, formulas_.atom(some))) return true;
    if (shape.min > shape.required.size()) {
      // Enough other keys?
      bool open = true;
      std::set<std::string> keys = shape.required;
      for (uint32_t index : shape.members) {
        open = open && formulas_.atom(index).rest != kFalseFormula;
        if (!formulas_.atom(index).patterns.empty()) open = true;
        for (const auto& [key, value] : formulas_.atom(index).properties)
          if (!IsEmpty(MemberFormula(shape, key)) && AllowsName(shape, key)) keys.insert(key);
      }
      for (NodeId names : shape.names)
        if (!pool().IsLive(names)) open = false;
      if (!open && keys.size() < shape.min) return true;
    }
  }
  if (shape.type == kArrayType) {
    const size_t prefix = PrefixLength(shape);
    if (shape.unique && shape.min > prefix && shape.min < 1000 &&
        CountValues(ItemFormula(shape, prefix), 1000) + prefix < shape.min)
      return true;
    for (size_t i = 0; i < std::min<uint64_t>(shape.min, prefix + 1); i++)
      if (IsEmpty(ItemFormula(shape, i))) return true;
    for (uint32_t some : shape.some) {
      const Atom& atom = formulas_.atom(some);
      if (atom.min == 0) continue;
      if (atom.min > shape.max) return true;
      uint64_t possible = 0;
      for (size_t i = atom.mask; i <= prefix && i < shape.max; i++) {
        const FormulaId item = ItemFormula(shape, i);
        if (IsEmpty(item)) break;
        if (IsEmpty(formulas_.And({item, atom.formula}))) continue;
        possible = i == prefix ? UINT64_MAX : possible + 1;
      }
      if (possible < atom.min) return true;
    }
  }
  return false;
}

}  // namespace onpolicy::grammar
