// Sums over shapes; products over items and members.
#include "base/limits.h"
#include "grammar/json-schema/shapes/shape.h"

#include <algorithm>
#include <map>

namespace onpolicy::grammar {

uint64_t ValueCount::Count(FormulaId formula) {
  auto& memo = is_sure_ ? sure_counts_ : counts_;
  auto known = memo.find(formula);
  if (known != memo.end()) return known->second;
  if (depth_ > limits::kCountDepth) return is_sure_ ? 0 : kCountedValues;
  const ScopedValue<int> deeper(depth_, depth_ + 1);
  // Shapes of one type may share values, so that only the values of one of them are certain.
  std::map<unsigned, uint64_t> counts;
  for (const Shape& shape : std::vector<Shape>(shapes_.Of(formula))) {
    uint64_t& count = counts[shape.type];
    count = is_sure_ ? std::max(count, OfShape(shape)) : std::min(kCountedValues, count + OfShape(shape));
  }
  uint64_t count = 0;
  for (const auto& [type, of_type] : counts) count = std::min(kCountedValues, count + of_type);
  // Deeper down, "many" (or a small certain number) may only mean that the depth limit was reached.
  if (depth_ == 1 || (count < kCountedValues) != is_sure_) memo[formula] = count;
  return count;
}

uint64_t ValueCount::CountSure(FormulaId formula) {
  const ScopedValue<bool> surely(is_sure_, true);
  const ScopedValue<int> depth(depth_, 0);
  return Count(formula);
}

uint64_t ValueCount::OfShape(const Shape& shape) {
  if (shapes_.IsShapeEmpty(shape)) return 0;
  switch (shape.type) {
    case kNullType:
      return 1;
    case kBoolType:
      return (shape.bools & 1) + (shape.bools >> 1);
    case kArrayType:
      return is_sure_ ? std::max<uint64_t>(1, Arrays(shape)) : Arrays(shape);
    case kObjectType:
      return is_sure_ ? std::max<uint64_t>(1, Objects(shape)) : Objects(shape);
    default:
      return Scalars(shape);
  }
}

// Returns texts with escapes only for characters that need one: about one spelling of each string.
NodeId ValueCount::PlainSpellings() {
  const auto bytes = [&](std::string_view list) { return pool_.Bytes(ByteSet::Of(list)); };
  const NodeId hex = bytes("0123456789abcdef");
  const NodeId control = pool_.Concat({pool_.Literal("u00"), bytes("01"), hex});
  const NodeId surrogate = pool_.Concat({pool_.Literal("ud"), bytes("89abcdef"), hex, hex});
  const NodeId escape =
      pool_.Concat(bytes("\\"), pool_.Alternate({bytes("\"\\bfnrt"), control, surrogate}));
  return pool_.Repeat(pool_.Alternate({pool_.Bytes(~ByteSet::Of("\\")), escape}), 0, kUnlimited);
}

uint64_t ValueCount::Scalars(const Shape& shape) {
  const NumberLanguage& numbers = values_.numbers();
  const auto count = [&](std::initializer_list<NodeId> parts) {
    return pool_.CountTexts(pool_.And(parts), kCountedValues, is_sure_);
  };
  if (shape.type == kStringType) {
    if (!is_sure_) return count({shape.text, PlainSpellings()});
    // Without escapes, a value has one spelling.
    return count({shape.text, pool_.Repeat(pool_.Bytes(~ByteSet::Of("\\")), 0, kUnlimited)});
  }
  const NodeId text = shape.text == kAnyText ? numbers.Any() : shape.text;
  // "1" and "1.0" are one value, and so are "1.5" and "1.50".
  const NodeId ends = is_sure_ ? pool_.Concat(kAnyText, pool_.Bytes(~ByteSet::Of("0"))) : kAnyText;
  return std::min(kCountedValues, count({text, numbers.Integer()}) + count({text, numbers.NotInteger(), ends}));
}

// Unless a certain number is asked for, conditions may be ignored, which can only raise the count.
uint64_t ValueCount::Arrays(const Shape& shape) {
  const bool has_places = parts_.PrefixLength(shape) > 0;
  if (is_sure_ && (!shape.some.empty() || (shape.unique && has_places))) return 0;
  uint64_t count = 0, ways = 1;
  for (size_t length = 0; length <= shape.max && count < kCountedValues; length++) {
    if (length >= shape.min) count += ways;
    if (length == shape.max) break;
    const uint64_t items = Count(parts_.ItemFormula(shape, length));
    // Unique items cannot repeat those before them.
    const uint64_t taken = shape.unique && !has_places && (items < kCountedValues || is_sure_) ? length : 0;
    ways = items > taken ? std::min(kCountedValues, ways * (items - taken)) : 0;
    if (ways == 0) break;
  }
  return std::min(count, kCountedValues);
}

bool ValueCount::MayHaveFurther(const Shape& shape) {
  size_t classes = 0;
  bool may = false;
  parts_.ForEachKeyClass(shape, parts_.FurtherKeys(shape), [&](NodeId, FormulaId formula) {
    may = !shapes_.IsEmpty(formula) || ++classes == limits::kSearchedClasses;
    return !may;
  });
  return may;
}

// Counts objects only if their keys and the values of these are all that can differ.
uint64_t ValueCount::Objects(const Shape& shape) {
  const uint64_t unknown = is_sure_ ? 0 : kCountedValues;
  if (is_sure_ && (!shape.some.empty() || !shape.names.empty() || !parts_.Patterns(shape).empty())) return 0;
  const std::set<std::string> keys = parts_.KnownKeys(shape);
  if (MayHaveFurther(shape)) return shape.max > shape.required.size() ? kCountedValues : unknown;
  if (is_sure_ && (shape.min > shape.required.size() || shape.max < keys.size())) return 0;
  uint64_t count = 1;
  for (const std::string& key : keys) {
    if (count >= kCountedValues) break;
    const uint64_t ways = Count(parts_.MemberFormula(shape, key)) + (shape.required.contains(key) ? 0 : 1);
    count = std::min(kCountedValues, count * ways);
  }
  return count;
}

}  // namespace onpolicy::grammar
