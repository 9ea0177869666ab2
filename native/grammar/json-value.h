// JSON text -> a tree that keeps member order and the spelling of numbers. Depth is bounded; errors carry the offset.
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
// Where the JSON value that ends at `end` begins, blanks before `end` skipped; npos when there is none.
// Strings are recognised backwards: inside one, every quote has an odd run of backslashes before it.
size_t FindValueStart(std::string_view text, size_t end);
// The key of the member whose value ends at the end of `text`; false when the text is not of that form.
bool FindMemberKey(std::string_view text, std::string* key);

// Offset of the opening quote of the string that `text` ends inside of, or npos.
size_t FindOpenString(std::string_view text);
// Keys of the members that stand to the left of `open`, the offset of a key's opening quote, in the same object.
std::vector<std::string> KeysBefore(std::string_view text, size_t open);
// Keys of the object that `text` ends inside of, the one last written too, where that is complete.
std::vector<std::string> KeysSoFar(std::string_view text);
// Whether the object key that ends at the end of `text` (with its closing quote) stands already in the same object.
bool RepeatsKey(std::string_view text);

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
// False when the exponent is beyond any use.
bool ParseDecimal(std::string_view text, Decimal* result);
int Compare(const Decimal& a, const Decimal& b);

}  // namespace onpolicy::grammar
