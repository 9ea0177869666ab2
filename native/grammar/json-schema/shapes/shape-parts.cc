// Conjunctions of the demands of a shape's atoms.
#include "grammar/json-schema/shapes/shape-parts.h"

#include <algorithm>

#include "grammar/json/value.h"

namespace onpolicy::grammar {

// Work counted for looking up the constraint of one atom on a key, and joining it with the others.
static constexpr uint64_t kPartWork = 20;

// Returns the key as the inside of a JSON string, in one of its spellings.
static std::string EncodedKey(const std::string& key) {
  std::string text;
  for (char byte : key) text += JsonSpelling(static_cast<uint8_t>(byte));
  return text;
}

// Returns the constraint that one atom puts on a key: the values of its entries that name or match the key, else that of the rest. `named`: what its
// properties say, or null.
template <typename Matches>
static void AddValues(const Atom& atom, const FormulaId* named, const Matches& matches, std::vector<FormulaId>* parts) {
  const size_t before = parts->size();
  if (named) parts->push_back(*named);
  for (const auto& [node, value] : atom.patterns)
    if (matches(node)) parts->push_back(value);
  if (parts->size() == before) parts->push_back(atom.rest);
}

bool ShapeParts::AllowsName(const Shape& shape, const std::string& key) {
  // One spelling is enough, because a language contains all spellings of a key or none.
  return std::all_of(shape.names.begin(), shape.names.end(), [&](NodeId names) { return pool_.Matches(names, EncodedKey(key)); });
}

FormulaId ShapeParts::MemberFormula(const Shape& shape, const std::string& key) {
  std::vector<FormulaId> parts;
  const std::string encoded = EncodedKey(key);
  for (uint32_t index : shape.members) {
    const Atom& atom = formulas_.atom(index);
    pool_.budget().Spend(kPartWork + atom.patterns.size());
    if (pool_.budget().IsSpent(Phase::kShapes)) throw UnenforceableSchema("#");
    AddValues(atom, atom.Property(key), [&](NodeId node) { return pool_.Matches(node, encoded); }, &parts);
  }
  return formulas_.And(std::move(parts));
}

FormulaId ShapeParts::FurtherFormula(const Shape& shape, const std::vector<NodeId>& matched) {
  std::vector<FormulaId> parts;
  const auto is_matched = [&](NodeId node) { return std::find(matched.begin(), matched.end(), node) != matched.end(); };
  for (uint32_t index : shape.members)
    AddValues(formulas_.atom(index), nullptr, is_matched, &parts);
  return formulas_.And(std::move(parts));
}

std::set<std::string> ShapeParts::KnownKeys(const Shape& shape) const {
  std::set<std::string> keys = shape.required;
  for (uint32_t index : shape.members)
    for (const auto& [key, value] : formulas_.atom(index).properties) keys.insert(key);
  return keys;
}

NodeId ShapeParts::FurtherKeys(const Shape& shape) {
  std::vector<NodeId> known, parts = shape.names;
  for (const std::string& key : KnownKeys(shape)) known.push_back(KeyNode(key));
  parts.push_back(values_.strict_text().AnyText());
  parts.push_back(pool_.Not(pool_.Alternate(std::move(known))));
  return pool_.And(std::move(parts));
}

std::vector<NodeId> ShapeParts::Patterns(const Shape& shape) const {
  std::vector<NodeId> patterns;
  for (uint32_t index : shape.members)
    for (const auto& [node, value] : formulas_.atom(index).patterns)
      if (std::find(patterns.begin(), patterns.end(), node) == patterns.end()) patterns.push_back(node);
  return patterns;
}

FormulaId ShapeParts::ItemFormula(const Shape& shape, size_t index) {
  std::vector<FormulaId> parts;
  for (uint32_t atom_index : shape.items) {
    const Atom& atom = formulas_.atom(atom_index);
    parts.push_back(index < atom.prefix.size() ? atom.prefix[index] : atom.rest);
  }
  return formulas_.And(std::move(parts));
}

size_t ShapeParts::PrefixLength(const Shape& shape) const {
  size_t length = 0;
  for (uint32_t atom : shape.items) length = std::max(length, formulas_.atom(atom).prefix.size());
  for (uint32_t atom : shape.some) length = std::max<size_t>(length, formulas_.atom(atom).mask);
  return length;
}

std::vector<FormulaId> ShapeParts::Children(const Shape& shape) {
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

}  // namespace onpolicy::grammar
