// Any bytes -> what the JSON readers make of them: no undefined behavior, and answers that agree with each other.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/json/matched-text.h"
#include "grammar/json/value.h"
#include "./require.h"

using namespace onpolicy::grammar;

namespace {

std::string Quoted(const std::string& text) {
  std::string result = "\"";
  for (char byte : text) result += JsonSpelling(static_cast<uint8_t>(byte));
  return result + "\"";
}

std::string Written(const JsonValue& value) {
  const auto list = [](const auto& parts, const auto& write) {
    std::string result;
    for (const auto& part : parts) result += (result.empty() ? "" : " ,\t") + write(part);
    return result;
  };
  switch (value.type) {
    case JsonValue::kNull:
      return "null";
    case JsonValue::kFalse:
      return "false";
    case JsonValue::kTrue:
      return "true";
    case JsonValue::kNumber:
      return value.text;
    case JsonValue::kString:
      return Quoted(value.text);
    case JsonValue::kArray:
      return "[\n" + list(value.items, Written) + " ]";
    case JsonValue::kObject:
      return "{ " + list(value.members, [](const JsonMember& member) { return Quoted(member.key) + " : " + Written(member.value); }) + "\r}";
  }
  return "";
}

void CheckMembers(const JsonValue& value) {
  for (const JsonMember& member : value.members) {
    Require(value.Find(member.key) == &member.value, "each key is found, and none comes twice");
    CheckMembers(member.value);
  }
  for (const JsonValue& item : value.items) CheckMembers(item);
}


std::vector<std::string> KeysOf(const MatchedText& text) {
  const MatchedText::KeysHere here = text.KeysSoFar();
  std::vector<std::string> keys;
  if (here.keys)
    for (const auto& [key, offset] : here.keys->offsets)
      if (offset < text.size()) keys.push_back(key);
  if (here.has_last && std::find(keys.begin(), keys.end(), here.last) == keys.end()) keys.push_back(here.last);
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Compares every reader on a text that caches answers with a reader on a fresh copy.
void CheckReaders(const MatchedText& text) {
  const MatchedText fresh{std::string(text.view())};
  Require(text.ValueStart(text.size()) == fresh.ValueStart(text.size()), "a value begins where it does");
  Require(text.OpenString() == fresh.OpenString(), "a string begins where it does");
  std::string key, other;
  Require(text.FindMemberKey(text.size(), &key) == fresh.FindMemberKey(text.size(), &other) && key == other, "a member has its key");
  Require(KeysOf(text) == KeysOf(fresh), "an object has its keys");
  if (text.back() == '"') Require(text.RepeatsKey() == fresh.RepeatsKey(), "a key repeats what it repeats");
}

// The beginnings of a value, with a look ahead now and then that is taken back.
void CheckBeginnings(std::string_view bytes) {
  MatchedText text;
  uint32_t random = 1;
  for (size_t at = 0; at < bytes.size(); at++) {
    text.push_back(bytes[at]);
    random = random * 1664525 + 1013904223 + static_cast<uint8_t>(bytes[at]);
    if ((random >> 29) == 0) {
      text.append(bytes.substr(at + 1, (random >> 8) % 40));
      CheckReaders(text);
      text.Shorten(at + 1);
    }
    if ((random >> 28) == 1) {
      const size_t less = std::min<size_t>(text.size(), (random >> 8) % 40);
      text.Shorten(text.size() - less);
      if (!text.empty()) CheckReaders(text);
      text.append(bytes.substr(at + 1 - less, less));
    }
    if ((random >> 27) % 4 == 0) CheckReaders(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Readers of unfinished text take anything.
  const MatchedText unfinished{std::string(text)};
  unfinished.OpenString();
  unfinished.RepeatsKey();
  unfinished.KeysSoFar();
  std::string last;
  unfinished.FindMemberKey(size, &last);

  JsonError error;
  const JsonValue value = ParseJson(text, &error);
  if (!error.message.empty()) {
    Require(error.position <= size, "an error is at a place in the text");
    return 0;
  }
  CheckMembers(value);
  CheckBeginnings(text);
  const std::string written = Written(value), canonical = CanonicalKey(value);
  const JsonValue again = ParseJson(written, &error);
  Require(error.message.empty(), "what was read can be written");
  Require(CanonicalKey(again) == canonical, "and is the same when it is read again");
  Require(MatchedText(written).ValueStart(written.size()) == 0, "a value is found from its end");
  if (!value.IsObject() || value.members.empty()) return 0;
  // Every member is found from behind.
  const MatchedText open(written.substr(0, written.rfind('}')));
  const std::vector<std::string> keys = KeysOf(open);
  Require(keys.size() == value.members.size(), "an open object has the keys of the whole one");
  for (const std::string& found : keys) Require(value.Find(found) != nullptr, "by their names");
  std::string key;
  Require(open.FindMemberKey(open.size(), &key) && key == value.members.back().key, "the last one last");
  JsonValue less = value;
  less.Erase(value.members[0].key);
  Require(less.Find(value.members[0].key) == nullptr && less.members.size() + 1 == value.members.size(), "a member can be removed");
  CheckMembers(less);
  return 0;
}
