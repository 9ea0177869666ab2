// What a shape demands of one key or one place, and how many values there are.
#include "grammar/schema-shape.h"

#include <algorithm>

namespace onpolicy::grammar {

static constexpr uint64_t kManyValues = 1000;
static constexpr int kMaxCountDepth = 8;

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

}  // namespace onpolicy::grammar
