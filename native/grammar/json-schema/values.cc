// One atom for scalars; arrays and objects item by item and member by member.
#include "grammar/json-schema/values.h"

#include "base/spec-error.h"

namespace onpolicy::grammar {

FormulaId ValueFormulas::Number(NodeId node, NodeId other) {
  return formulas_.AtomOf({.kind = Atom::kNumber, .node = node, .other = other});
}

FormulaId ValueFormulas::String(NodeId node, NodeId other) {
  return formulas_.AtomOf({.kind = Atom::kString, .node = node, .other = other});
}

FormulaId ValueFormulas::String(NodeId node) { return String(node, pool_.And({strict_text_.AnyText(), pool_.Not(node)})); }

FormulaId ValueFormulas::AnyOf(const std::vector<JsonValue>& values, bool any_order) {
  std::vector<FormulaId> options;
  std::vector<NodeId> texts, numbers, others;
  unsigned bools = 0;
  for (const JsonValue& value : values) {
    if (value.IsString()) {
      texts.push_back(strict_text_.Text(value.text));
    } else if (value.IsBool()) {
      bools |= value.type == JsonValue::kTrue ? 2 : 1;
    } else if (value.IsNumber()) {
      Decimal decimal;
      if (!ParseDecimal(value.text, &decimal)) throw SpecError("UNSUPPORTED", "", "a number with an exponent beyond 400");
      numbers.push_back(numbers_.Exactly(decimal));
      others.push_back(numbers_.Ordered(decimal, kLess | kGreater));
    } else {
      options.push_back(Exactly(value, any_order));
    }
  }
  if (!texts.empty())
    options.push_back(formulas_.And({formulas_.Types(kStringType), String(pool_.Alternate(std::move(texts)))}));
  if (!numbers.empty())
    options.push_back(formulas_.And({formulas_.Types(kNumberType),
                                     Number(pool_.Alternate(std::move(numbers)), pool_.And(std::move(others)))}));
  if (bools) options.push_back(formulas_.Bools(bools));
  return formulas_.Or(std::move(options));
}

FormulaId ValueFormulas::Exactly(const JsonValue& value, bool any_order) {
  switch (value.type) {
    case JsonValue::kNull:
      return formulas_.Types(kNullType);
    case JsonValue::kArray:
      return ExactArray(value, any_order);
    case JsonValue::kObject:
      return ExactObject(value, any_order);
    default:
      return AnyOf({value}, any_order);
  }
}

FormulaId ValueFormulas::ExactArray(const JsonValue& value, bool any_order) {
  Atom items{.kind = Atom::kItems, .rest = kFalseFormula};
  for (const JsonValue& item : value.items) items.prefix.push_back(Exactly(item, any_order));
  const size_t count = value.items.size();
  return formulas_.And({formulas_.Types(kArrayType), formulas_.AtomOf(std::move(items)),
                        formulas_.AtomOf({.kind = Atom::kItemCount, .min = count, .max = count})});
}

FormulaId ValueFormulas::ExactObject(const JsonValue& value, bool any_order) {
  std::vector<FormulaId> parts{formulas_.Types(kObjectType)};
  Atom members{.kind = Atom::kMembers, .any_order = any_order, .rest = kFalseFormula};
  std::vector<NodeId> keys;
  for (const auto& [key, member] : value.members) {
    members.properties.push_back({key, Exactly(member, any_order)});
    keys.push_back(strict_text_.Text(key));
    parts.push_back(formulas_.Required(key));
  }
  members.other = pool_.And({strict_text_.AnyText(), pool_.Not(pool_.Alternate(std::move(keys)))});
  parts.push_back(formulas_.AtomOf(std::move(members)));
  return formulas_.And(std::move(parts));
}

}  // namespace onpolicy::grammar
