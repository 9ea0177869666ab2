// Atoms, and the values and counts that keywords give.
#include "base/spec-error.h"
#include "json-schema/compile.h"

namespace onpolicy::grammar {

FormulaId SchemaCompiler::NumberAtom(NodeId node, NodeId other) {
  Atom atom;
  atom.kind = Atom::kNumber;
  atom.node = node;
  atom.other = other;
  return formulas_.AtomOf(std::move(atom));
}

FormulaId SchemaCompiler::StringAtom(NodeId node, NodeId other) {
  Atom atom;
  atom.kind = Atom::kString;
  atom.node = node;
  atom.other = other;
  return formulas_.AtomOf(std::move(atom));
}

FormulaId SchemaCompiler::CountAtom(Atom::Kind kind, uint64_t min, uint64_t max) {
  Atom atom;
  atom.kind = kind;
  atom.min = min;
  atom.max = max;
  return formulas_.AtomOf(std::move(atom));
}

// Scalars of one type share an atom, so that a long enum is one automaton.
FormulaId SchemaCompiler::Enumerated(const std::vector<JsonValue>& values) {
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
      options.push_back(Value(value));
    }
  }
  if (!texts.empty()) {
    const NodeId node = pool_.Alternate(std::move(texts));
    options.push_back(formulas_.And({formulas_.Types(kStringType),
                                     StringAtom(node, pool_.And({strict_text_.AnyText(), pool_.Not(node)}))}));
  }
  if (!numbers.empty())
    options.push_back(formulas_.And({formulas_.Types(kNumberType),
                                     NumberAtom(pool_.Alternate(std::move(numbers)), pool_.And(std::move(others)))}));
  if (bools) {
    Atom atom;
    atom.kind = Atom::kBool;
    atom.mask = bools;
    options.push_back(formulas_.And({formulas_.Types(kBoolType), formulas_.AtomOf(std::move(atom))}));
  }
  return formulas_.Or(std::move(options));
}

FormulaId SchemaCompiler::Value(const JsonValue& value) {
  switch (value.type) {
    case JsonValue::kNull:
      return formulas_.Types(kNullType);
    case JsonValue::kArray: {
      Atom items;
      items.kind = Atom::kItems;
      for (const JsonValue& item : value.items) items.prefix.push_back(Value(item));
      items.rest = kFalseFormula;
      return formulas_.And({formulas_.Types(kArrayType), formulas_.AtomOf(std::move(items)),
                            CountAtom(Atom::kItemCount, value.items.size(), value.items.size())});
    }
    case JsonValue::kObject: {
      std::vector<FormulaId> parts{formulas_.Types(kObjectType)};
      Atom members;
      members.kind = Atom::kMembers;
      std::vector<NodeId> keys;
      for (const auto& [key, member] : value.members) {
        members.properties.push_back({key, Value(member)});
        keys.push_back(strict_text_.Text(key));
        Atom required;
        required.kind = Atom::kRequired;
        required.key = key;
        parts.push_back(formulas_.AtomOf(std::move(required)));
      }
      members.rest = kFalseFormula;
      members.other = pool_.And({strict_text_.AnyText(), pool_.Not(pool_.Alternate(std::move(keys)))});
      parts.push_back(formulas_.AtomOf(std::move(members)));
      return formulas_.And(std::move(parts));
    }
    default:
      return Enumerated({value});
  }
}

uint64_t SchemaCompiler::Count(const JsonValue& value, const std::string& pointer) {
  Decimal decimal;
  if (!value.IsNumber() || !ParseDecimal(value.text, &decimal) || !decimal.IsInteger() || decimal.negative)
    Malformed(pointer, "must be a non-negative integer");
  const std::string digits = decimal.IntegerDigits();
  return digits.size() > 9 ? 1000000000ull : std::stoull(digits);
}

Decimal SchemaCompiler::Number(const JsonValue& value, const std::string& pointer) {
  Decimal decimal;
  if (!value.IsNumber()) Malformed(pointer, "must be a number");
  if (!ParseDecimal(value.text, &decimal)) Unsupported(pointer, "an exponent beyond 400 is not supported");
  return decimal;
}

}  // namespace onpolicy::grammar
