// The parser and decimal arithmetic.
#include "json/value.h"

#include <algorithm>

#include "base/limits.h"
#include "base/text-cursor.h"

namespace onpolicy::grammar {

// Of a number that is compared with others.
static constexpr size_t kMostDigits = 4000;

const JsonValue* JsonValue::Find(std::string_view key) const {
  if (type != kObject) return nullptr;
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

namespace {

class JsonParser : private TextCursor {
 public:
  explicit JsonParser(std::string_view text) : TextCursor(text) {}

  JsonValue Parse() {
    JsonValue value = Value(0);
    Blank();
    if (!AtEnd()) Fail("unexpected text after the value");
    return value;
  }

 private:
  [[noreturn]] void Fail(const char* message) { throw JsonError{at_, message}; }
  void Blank() {
    while (Peek() == ' ' || Peek() == '\n' || Peek() == '\r' || Peek() == '\t') at_++;
  }

  JsonValue Value(int depth) {
    JsonValue value;
    Blank();
    if (depth > limits::kJsonDepth) Fail("nested too deeply");
    if (AtEnd()) Fail("unexpected end");
    const char c = Peek();
    if (c == '{') {
      Object(&value, depth);
    } else if (c == '[') {
      Array(&value, depth);
    } else if (c == '"') {
      value.type = JsonValue::kString;
      value.text = String();
    } else if (Take("true")) {
      value.type = JsonValue::kTrue;
    } else if (Take("false")) {
      value.type = JsonValue::kFalse;
    } else if (!Take("null")) {
      value.type = JsonValue::kNumber;
      value.text = Number();
    }
    return value;
  }

  void Object(JsonValue* value, int depth) {
    value->type = JsonValue::kObject;
    at_++;
    Blank();
    if (Take("}")) return;
    while (true) {
      Blank();
      if (Peek() != '"') Fail("expected a key");
      std::string key = String();
      Blank();
      if (!Take(":")) Fail("expected ':'");
      JsonValue member = Value(depth + 1);
      auto same = std::find_if(value->members.begin(), value->members.end(),
                               [&](const auto& other) { return other.first == key; });
      if (same != value->members.end()) {
        same->second = std::move(member);
      } else {
        value->members.emplace_back(std::move(key), std::move(member));
      }
      Blank();
      if (Take("}")) return;
      if (!Take(",")) Fail("expected ',' or '}'");
    }
  }

  void Array(JsonValue* value, int depth) {
    value->type = JsonValue::kArray;
    at_++;
    Blank();
    if (Take("]")) return;
    while (true) {
      value->items.push_back(Value(depth + 1));
      Blank();
      if (Take("]")) return;
      if (!Take(",")) Fail("expected ',' or ']'");
    }
  }

  std::string String() {
    std::string result;
    at_++;
    while (true) {
      if (AtEnd()) Fail("unterminated string");
      const char c = text_[at_++];
      if (c == '"') return result;
      if (static_cast<uint8_t>(c) < 0x20) {
        at_--;
        Fail("a control character inside a string");
      }
      if (c != '\\') {
        result.push_back(c);
        continue;
      }
      const char escape = AtEnd() ? '\0' : text_[at_++];
      const std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
      if (const size_t index = from.find(escape); escape != '\0' && index != std::string_view::npos) {
        result.push_back(to[index]);
      } else if (escape == 'u') {
        const int64_t code = UnicodeEscape();
        if (code < 0) Fail("invalid \\u escape");
        AppendUtf8(static_cast<uint32_t>(code), &result);
      } else {
        Fail("invalid escape");
      }
    }
  }

  std::string Number() {
    const size_t begin = at_;
    const auto digits = [&] {
      const size_t first = at_;
      while (Peek() >= '0' && Peek() <= '9') at_++;
      return at_ > first;
    };
    Take("-");
    if (!Take("0") && !digits()) Fail("unexpected character");
    if (Take(".") && !digits()) Fail("expected a digit");
    if (Take("e") || Take("E")) {
      if (!Take("+")) Take("-");
      if (!digits()) Fail("expected a digit");
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

};

}  // namespace

JsonValue ParseJson(std::string_view text, JsonError* error) {
  *error = {};
  try {
    return JsonParser(text).Parse();
  } catch (const JsonError& failure) {
    *error = failure;
    return {};
  }
}

std::string Decimal::IntegerDigits() const {
  if (exponent >= 0) return digits.empty() ? "0" : digits + std::string(static_cast<size_t>(exponent), '0');
  const int64_t count = static_cast<int64_t>(digits.size()) + exponent;
  return count <= 0 ? "0" : digits.substr(0, static_cast<size_t>(count));
}

std::string Decimal::FractionDigits() const {
  if (exponent >= 0) return "";
  const int64_t count = static_cast<int64_t>(digits.size()) + exponent;
  if (count >= 0) return digits.substr(static_cast<size_t>(count));
  return std::string(static_cast<size_t>(-count), '0') + digits;
}

bool ParseDecimal(std::string_view text, Decimal* result) {
  *result = {};
  size_t at = 0;
  if (at < text.size() && text[at] == '-') {
    result->negative = true;
    at++;
  }
  for (bool fraction = false; at < text.size() && text[at] != 'e' && text[at] != 'E'; at++) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    result->digits.push_back(text[at]);
    if (fraction) result->exponent--;
  }
  if (at < text.size()) {
    int64_t exponent = 0;
    bool negative = false;
    for (at++; at < text.size(); at++) {
      if (text[at] == '-') negative = true;
      if (text[at] >= '0' && text[at] <= '9') exponent = std::min<int64_t>(exponent * 10 + (text[at] - '0'), 1000000);
    }
    result->exponent += negative ? -exponent : exponent;
  }
  const size_t first = result->digits.find_first_not_of('0');
  result->digits.erase(0, first == std::string::npos ? result->digits.size() : first);
  while (!result->digits.empty() && result->digits.back() == '0') {
    result->digits.pop_back();
    result->exponent++;
  }
  if (result->digits.empty()) *result = {};
  return result->exponent < 400 && result->exponent > -400 && result->digits.size() <= kMostDigits;
}

std::string CanonicalKey(const JsonValue& value) {
  switch (value.type) {
    case JsonValue::kNull:
      return "n";
    case JsonValue::kFalse:
      return "f";
    case JsonValue::kTrue:
      return "t";
    case JsonValue::kString:
      return "s" + std::to_string(value.text.size()) + ":" + value.text;
    case JsonValue::kNumber: {
      Decimal decimal;
      if (!ParseDecimal(value.text, &decimal)) return "#" + value.text + ";";
      return (decimal.negative ? "-" : "+") + decimal.digits + "e" + std::to_string(decimal.exponent) + ";";
    }
    case JsonValue::kArray: {
      std::string key = "[";
      for (const JsonValue& item : value.items) key += CanonicalKey(item);
      return key + "]";
    }
    case JsonValue::kObject: {
      std::vector<std::string> parts;
      for (const auto& [name, member] : value.members)
        parts.push_back(std::to_string(name.size()) + ":" + name + CanonicalKey(member));
      std::sort(parts.begin(), parts.end());
      std::string key = "{";
      for (const std::string& part : parts) key += part;
      return key + "}";
    }
  }
  return "";
}

}  // namespace onpolicy::grammar
