// A value of a structural tag with its JSON pointer -> checked C++ values; errors name the pointer.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/spec-error.h"
#include "grammar/json/value.h"

namespace onpolicy::grammar {

class TagPlace {
 public:
  TagPlace(const JsonValue& value, std::string pointer) : value_(&value), pointer_(std::move(pointer)) {}

  const JsonValue& value() const { return *value_; }
  const std::string& pointer() const { return pointer_; }

  [[noreturn]] void Fail(const std::string& what) const { throw SpecError("INVALID_REQUEST", "#" + pointer_, what); }
  [[noreturn]] void Unsupported(const std::string& what) const { throw SpecError("UNSUPPORTED", "#" + pointer_, what); }

  // Runs `compile` on text of another notation, and adds this place to its errors.
  template <typename Compile>
  auto Inner(const Compile& compile) const -> decltype(compile()) {
    try {
      return compile();
    } catch (const SpecError& error) {
      throw error.Within("#" + pointer_, error.offset());
    }
  }

  const TagPlace& Object() const {
    if (!value_->IsObject()) Fail("must be an object");
    return *this;
  }

  // Returns the place of member `key`. Its value is null if there is no such member.
  TagPlace At(const std::string& key) const {
    static const JsonValue null;
    const JsonValue* found = value_->Find(key);
    return {found ? *found : null, pointer_ + "/" + key};
  }
  bool Has(const std::string& key) const { return value_->Find(key) != nullptr; }
  // Returns the member `key`, unless it is absent or null.
  std::optional<TagPlace> Given(const std::string& key) const {
    TagPlace place = At(key);
    return place.value_->type != JsonValue::kNull ? std::optional(std::move(place)) : std::nullopt;
  }
  TagPlace Need(const std::string& key) const {
    if (!Has(key)) At(key).Fail("is missing");
    return At(key);
  }

  const std::string& Text() const {
    if (!value_->IsString()) Fail("must be a string");
    return value_->text;
  }
  uint32_t Count() const {
    Decimal decimal;
    if (value_->IsNumber() && ParseDecimal(value_->text, &decimal) && decimal.IsInteger() && !decimal.negative &&
        decimal.IntegerDigits().size() <= 10)
      if (const uint64_t count = std::stoull(decimal.IntegerDigits()); count <= kLastCount) return static_cast<uint32_t>(count);
    Fail("must be an integer from 0 to " + std::to_string(kLastCount));
  }
  bool Flag(const std::string& key, bool otherwise = false) const {
    const std::optional<TagPlace> flag = Given(key);
    if (flag && !flag->value_->IsBool()) flag->Fail("must be a boolean");
    return flag ? flag->value_->type == JsonValue::kTrue : otherwise;
  }
  // Returns the texts in `key`, or none if it is absent.
  std::vector<std::string> Texts(const std::string& key) const {
    std::vector<std::string> texts;
    const std::optional<TagPlace> list = Given(key);
    if (list && !list->value_->IsArray()) list->Fail("must be a list of strings");
    for (size_t i = 0; list && i < list->value_->items.size(); i++) {
      texts.push_back(TagPlace(list->value_->items[i], list->pointer_).Text());
      if (texts.back().empty()) list->Fail("holds an empty string");
    }
    return texts;
  }
  std::vector<TagPlace> List(const std::string& key) const {
    const TagPlace list = Need(key);
    if (!list.value_->IsArray() || list.value_->items.empty()) list.Fail("must be a non-empty list");
    return list.Items();
  }
  std::vector<TagPlace> Items() const {
    std::vector<TagPlace> items;
    for (const JsonValue& item : value_->items) items.emplace_back(item, pointer_ + "/" + std::to_string(items.size()));
    return items;
  }

 private:
  static constexpr uint64_t kLastCount = 0x7FFFFFFF;

  const JsonValue* value_;
  std::string pointer_;
};

}  // namespace onpolicy::grammar
