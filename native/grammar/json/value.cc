// The parser, and decimal arithmetic.
#include "grammar/json/value.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/limits.h"
#include "base/text-cursor.h"

namespace onpolicy::grammar {

// Maximum digits of a number that is compared with others.
static constexpr size_t kMostDigits = 4000;
// Objects of up to this many members are searched linearly.
static constexpr size_t kFewMembers = 16;

const JsonValue* JsonValue::Find(std::string_view key) const {
  if (type != kObject) return nullptr;
  if (!by_key.empty()) {
    const auto found = std::lower_bound(by_key.begin(), by_key.end(), key, [&](uint32_t at, std::string_view name) { return members[at].key < name; });
    return found != by_key.end() && members[*found].key == key ? &members[*found].value : nullptr;
  }
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

void JsonValue::Erase(std::string_view key) {
  std::erase_if(members, [&](const auto& member) { return member.key == key; });
  by_key.clear();
  if (members.size() <= kFewMembers) return;
  by_key.resize(members.size());
  std::iota(by_key.begin(), by_key.end(), 0u);
  std::sort(by_key.begin(), by_key.end(), [&](uint32_t a, uint32_t b) { return members[a].key < members[b].key; });
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
      value->members.push_back({std::move(key), std::move(member)});
      Blank();
      if (Take("}")) break;
      if (!Take(",")) Fail("expected ',' or '}'");
    }
    JoinSameKeys(value);
  }

  // A later member with the same key replaces the value of the first one.
  static void JoinSameKeys(JsonValue* value) {
    auto& members = value->members;
    std::vector<uint32_t> order(members.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto is_before = [&](uint32_t a, uint32_t b) { return std::tie(members[a].key, a) < std::tie(members[b].key, b); };
    std::sort(order.begin(), order.end(), is_before);
    std::vector<bool> is_joined(members.size());
    size_t joined = 0;
    for (size_t first = 0, end = 0; first < order.size(); first = end) {
      while (end < order.size() && members[order[end]].key == members[order[first]].key) end++;
      if (end - first == 1) continue;
      members[order[first]].value = std::move(members[order[end - 1]].value);
      for (size_t at = first + 1; at < end; at++) is_joined[order[at]] = true;
      joined += end - first - 1;
    }
    if (joined > 0) {
      size_t kept = 0;
      for (size_t at = 0; at < members.size(); at++) {
        if (is_joined[at]) continue;
        if (kept != at) members[kept] = std::move(members[at]);
        kept++;
      }
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
      order.resize(kept);
      std::iota(order.begin(), order.end(), 0u);
      if (kept > kFewMembers) std::sort(order.begin(), order.end(), is_before);
    }
    if (members.size() > kFewMembers) value->by_key = std::move(order);
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

std::string JsonSpelling(uint8_t byte) {
  const char character = static_cast<char>(byte);
  if (byte == '"' || byte == '\\') return {'\\', character};
  if (byte >= 0x20) return {character};
  const char* digits = "0123456789abcdef";
  return {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
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
