// What a shape demands of one key or one place, and how many values there are.
#include "json-schema/shape.h"

#include <algorithm>

#include "base/scoped-value.h"

namespace onpolicy::grammar {

static constexpr uint64_t kManyValues = 1000;
static constexpr int kMaxCountDepth = 8;
// What it costs to look up what one restriction of objects says of a key, and to join it with the others.
static constexpr uint64_t kPartWork = 20;

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
    pool().Charge(kPartWork + atom.properties.size());
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
  auto& memo = counts_surely_ ? sure_counts_ : counts_;
  auto known = memo.find(formula);
  if (known != memo.end()) return std::min(known->second, cap);
  if (counting_ > kMaxCountDepth) return counts_surely_ ? 0 : cap;
  const ScopedValue<int> deeper(counting_, counting_ + 1);
  // Shapes of one type may share values: only those of one of them are sure.
  std::map<unsigned, uint64_t> counts;
  for (const Shape& shape : std::vector<Shape>(Of(formula))) {
    uint64_t& count = counts[shape.type];
    count = counts_surely_ ? std::max(count, CountShape(shape)) : std::min(kManyValues, count + CountShape(shape));
  }
  uint64_t count = 0;
  for (const auto& [type, of_type] : counts) count = std::min(kManyValues, count + of_type);
  // Deeper down, "many" (or few that are sure) may only mean that the depth was reached.
  if (counting_ == 1 || (count < kManyValues) != counts_surely_) memo[formula] = count;
  return std::min(count, cap);
}

uint64_t ShapeTable::CountSureValues(FormulaId formula, uint64_t cap) {
  const ScopedValue<bool> surely(counts_surely_, true);
  const ScopedValue<int> depth(counting_, 0);
  return CountValues(formula, cap);
}

uint64_t ShapeTable::CountShape(const Shape& shape) {
  if (IsShapeEmpty(shape)) return 0;
  switch (shape.type) {
    case kNullType:
      return 1;
    case kBoolType:
      return (shape.bools & 1) + (shape.bools >> 1);
    case kArrayType:
      return counts_surely_ ? std::max<uint64_t>(1, CountArrays(shape)) : CountArrays(shape);
    case kObjectType:
      return counts_surely_ ? std::max<uint64_t>(1, CountObjects(shape)) : CountObjects(shape);
    default:
      return CountScalars(shape);
  }
}

// Texts in which escapes stand only where characters need one: about one spelling of each string.
NodeId ShapeTable::PlainSpellings() {
  const auto bytes = [&](std::string_view list) {
    ByteSet set;
    for (char c : list) set.Add(static_cast<uint8_t>(c));
    return pool().Bytes(set);
  };
  ByteSet backslash;
  backslash.Add('\\');
  const NodeId hex = bytes("0123456789abcdef");
  const NodeId control = pool().Concat({pool().Literal("u00"), bytes("01"), hex});
  const NodeId surrogate = pool().Concat({pool().Literal("ud"), bytes("89abcdef"), hex, hex});
  const NodeId escape =
      pool().Concat(pool().Bytes(backslash), pool().Alternate({bytes("\"\\bfnrt"), control, surrogate}));
  return pool().Repeat(pool().Alternate({pool().Bytes(~backslash), escape}), 0, kUnlimited);
}

uint64_t ShapeTable::CountScalars(const Shape& shape) {
  const NumberLanguage& numbers = compiler_.values().numbers();
  const auto count = [&](std::initializer_list<NodeId> parts) {
    return pool().CountTexts(pool().And(parts), kManyValues, counts_surely_);
  };
  if (shape.type == kStringType) {
    if (!counts_surely_) return count({shape.text, PlainSpellings()});
    // Without escapes, a value has one spelling.
    ByteSet backslash;
    backslash.Add('\\');
    return count({shape.text, pool().Repeat(pool().Bytes(~backslash), 0, kUnlimited)});
  }
  const NodeId text = shape.text == kAnyText ? numbers.Any() : shape.text;
  // "1" and "1.0" are one value, and so are "1.5" and "1.50".
  ByteSet zero;
  zero.Add('0');
  const NodeId ends = counts_surely_ ? pool().Concat(kAnyText, pool().Bytes(~zero)) : kAnyText;
  return std::min(kManyValues, count({text, numbers.Integer()}) + count({text, numbers.NotInteger(), ends}));
}

uint64_t ShapeTable::CountArrays(const Shape& shape) {
  const uint64_t unknown = counts_surely_ ? 0 : kManyValues;
  if (!shape.some.empty() || (shape.unique && PrefixLength(shape) > 0)) return unknown;
  uint64_t count = 0, ways = 1;
  for (size_t length = 0; length <= shape.max && count < kManyValues; length++) {
    if (length >= shape.min) count += ways;
    if (length == shape.max) break;
    const uint64_t items = CountValues(ItemFormula(shape, length), kManyValues);
    // Those before it are not there again.
    const uint64_t taken = shape.unique && (items < kManyValues || counts_surely_) ? length : 0;
    ways = items > taken ? std::min(kManyValues, ways * (items - taken)) : 0;
    if (ways == 0) break;
  }
  return std::min(count, kManyValues);
}

// Objects are counted when only their keys and the values of those can differ.
uint64_t ShapeTable::CountObjects(const Shape& shape) {
  const uint64_t unknown = counts_surely_ ? 0 : kManyValues;
  if (!shape.some.empty() || !shape.names.empty()) return unknown;
  std::set<std::string> keys = shape.required;
  std::vector<FormulaId> rests;
  for (uint32_t index : shape.members) {
    const Atom& atom = formulas_.atom(index);
    if (!atom.patterns.empty()) return unknown;
    rests.push_back(atom.rest);
    for (const auto& [key, value] : atom.properties) keys.insert(key);
  }
  if (!IsEmpty(formulas_.And(std::move(rests)))) return shape.max > shape.required.size() ? kManyValues : unknown;
  if (shape.min > shape.required.size() || shape.max < keys.size()) return unknown;
  uint64_t count = 1;
  for (const std::string& key : keys) {
    if (count >= kManyValues) break;
    const uint64_t ways = CountValues(MemberFormula(shape, key), kManyValues) + (shape.required.contains(key) ? 0 : 1);
    count = std::min(kManyValues, count * ways);
  }
  return count;
}

}  // namespace onpolicy::grammar
