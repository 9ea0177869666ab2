// JSON text -> a tree that keeps the order of members and the spelling of numbers. Its depth is limited; errors have the offset.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onpolicy::grammar {

struct JsonMember;

struct JsonValue {
  enum Type { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject } type = kNull;
  std::string text;  // UTF-8 of a string, spelling of a number
  std::vector<JsonValue> items;
  std::vector<JsonMember> members;
  std::vector<uint32_t> by_key;  // members sorted by key; empty if there are few

  const JsonValue* Find(std::string_view key) const;
  // Removes a member.
  void Erase(std::string_view key);
  bool IsObject() const { return type == kObject; }
  bool IsArray() const { return type == kArray; }
  bool IsString() const { return type == kString; }
  bool IsNumber() const { return type == kNumber; }
  bool IsBool() const { return type == kFalse || type == kTrue; }
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

struct JsonError {
  size_t position = 0;
  std::string message;  // empty if there is no error
};

// Parses exactly one value. A later member with the same key replaces the earlier one.
JsonValue ParseJson(std::string_view text, JsonError* error);
// Returns a byte of a string in JSON, escaped only if necessary.
std::string JsonSpelling(uint8_t byte);
// Returns a key that is the same for equal values: members sorted, numbers in plain decimal form.
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
// Returns false if the exponent or the number of digits exceeds the limits.
bool ParseDecimal(std::string_view text, Decimal* result);

}  // namespace onpolicy::grammar
