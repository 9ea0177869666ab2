// JSON text -> a tree with the order of members and the spelling of numbers. Depth is bounded; errors carry the offset.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onpolicy::grammar {

struct JsonValue {
  enum Type { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject } type = kNull;
  std::string text;  // UTF-8 of a string, spelling of a number
  std::vector<JsonValue> items;
  std::vector<std::pair<std::string, JsonValue>> members;

  const JsonValue* Find(std::string_view key) const;
  bool IsObject() const { return type == kObject; }
  bool IsArray() const { return type == kArray; }
  bool IsString() const { return type == kString; }
  bool IsNumber() const { return type == kNumber; }
  bool IsBool() const { return type == kFalse || type == kTrue; }
};

struct JsonError {
  size_t position = 0;
  std::string message;  // empty: no error
};

// Parses exactly one value; a later member with the same key replaces the earlier one.
JsonValue ParseJson(std::string_view text, JsonError* error);
// Equal values have equal keys: members sorted, numbers in plain decimal form.
std::string CanonicalKey(const JsonValue& value);
// A decimal number: value = (-1)^negative * digits * 10^exponent, digits without leading or trailing zeros.
struct Decimal {
  bool negative = false;
  std::string digits;  // empty for zero
  int64_t exponent = 0;
  std::string IntegerDigits() const;   // "0" when below one
  std::string FractionDigits() const;  // without trailing zeros
  bool IsInteger() const { return exponent >= 0; }
  bool IsZero() const { return digits.empty(); }
};
// False when the exponent, or the number of digits, is beyond any use.
bool ParseDecimal(std::string_view text, Decimal* result);

}  // namespace onpolicy::grammar
