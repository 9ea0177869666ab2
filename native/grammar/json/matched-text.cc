// The scanner: reads members from right to left, up to the cached part.
#include "grammar/json/matched-text.h"

#include <algorithm>

#include "grammar/json/value.h"

namespace onpolicy::grammar {

// Values of fewer bytes are not cached, but scanned again.
static constexpr size_t kLongValue = 16;

static bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool HasSeveralSpellings(std::string_view key) {
  return std::any_of(key.begin(), key.end(), [](char c) { return c < 0x20 || c > 0x7E || c == '"' || c == '\\' || c == '/'; });
}

// Returns true if a spelling has no escapes.
static bool IsPlain(std::string_view spelling) {
  return std::none_of(spelling.begin(), spelling.end(), [](char c) { return c == '\\' || static_cast<uint8_t>(c) < 0x20; });
}

static std::string KeyOf(std::string_view spelling) {
  if (spelling.size() >= 2 && IsPlain(spelling)) return std::string(spelling.substr(1, spelling.size() - 2));
  JsonError error;
  return ParseJson(spelling, &error).text;
}

void MatchedText::Note(size_t known_to) const { known_to_ = std::max(known_to_, known_to); }

void MatchedText::Forget(size_t size) {
  while (!starts_.empty() && starts_.rbegin()->first > size) starts_.erase(std::prev(starts_.end()));
  while (!keys_.empty() && keys_.rbegin()->second.end > size) {
    const auto last = std::prev(keys_.end());
    const auto object = objects_.find(last->second.first);
    auto& offsets = object->second.offsets;
    const auto key = offsets.find(KeyOf(view().substr(last->first, last->second.end - last->first)));
    if (key != offsets.end() && key->second == last->first) {
      object->second.with_spellings -= HasSeveralSpellings(key->first);
      offsets.erase(key);
    }
    if (offsets.empty()) objects_.erase(object);
    keys_.erase(last);
  }
  if (open_to_ > size) open_string_ = std::string_view::npos;
  known_to_ = size;
}

// Returns the start of the blanks before `end`.
size_t MatchedText::BlanksStart(size_t end) const {
  while (end > 0 && IsBlank(bytes_[end - 1])) end--;
  return end;
}

// Returns the start of the string whose closing quote is at `close`. Inside a string, every quote has an odd run of backslashes before it.
size_t MatchedText::StringStart(size_t close) const {
  for (size_t at = close; at-- > 0;) {
    steps_++;
    if (bytes_[at] != '"') continue;
    size_t slashes = 0;
    while (slashes < at && bytes_[at - 1 - slashes] == '\\') slashes++;
    steps_ += slashes;
    if (slashes % 2 == 0) return at;
    at -= slashes;
  }
  return std::string_view::npos;
}

size_t MatchedText::ContainerStart(size_t end) const {
  size_t depth = 0;
  for (size_t at = end; at-- > 0;) {
    const char c = bytes_[at];
    steps_++;
    if (c == '"') {
      at = StringStart(at);
      if (at == std::string_view::npos) return at;
    } else if (c == '}' || c == ']') {
      if (const auto known = starts_.find(static_cast<uint32_t>(at + 1)); known != starts_.end()) {
        at = known->second;
        if (depth == 0) return at;
      } else {
        depth++;
      }
    } else if (c == '{' || c == '[') {
      if (--depth == 0) return at;
    }
  }
  return std::string_view::npos;
}

size_t MatchedText::ValueStart(size_t end) const {
  end = BlanksStart(end);
  if (end == 0) return std::string_view::npos;
  const char last = bytes_[end - 1];
  if (last == '"' || last == '}' || last == ']') {
    steps_++;
    if (const auto known = starts_.find(static_cast<uint32_t>(end)); known != starts_.end()) return known->second;
    const size_t start = last == '"' ? StringStart(end - 1) : ContainerStart(end);
    if (start != std::string_view::npos && end - start > kLongValue) {
      starts_.emplace(static_cast<uint32_t>(end), static_cast<uint32_t>(start));
      Note(end);
    }
    return start;
  }
  size_t at = end;
  while (at > 0 && !IsBlank(bytes_[at - 1]) && std::string_view(",:[{").find(bytes_[at - 1]) == std::string_view::npos) at--;
  steps_ += end - at;
  return at;
}

std::string_view MatchedText::MemberSpelling(size_t end) const {
  size_t at = ValueStart(end);
  if (at == std::string_view::npos) return {};
  at = BlanksStart(at);
  if (at == 0 || bytes_[at - 1] != ':') return {};
  at = BlanksStart(at - 1);
  const size_t start = at > 0 && bytes_[at - 1] == '"' ? StringStart(at - 1) : std::string_view::npos;
  return start == std::string_view::npos ? std::string_view() : view().substr(start, at - start);
}

bool MatchedText::FindMemberKey(size_t end, std::string* key) const {
  const std::string_view spelling = MemberSpelling(end);
  if (spelling.empty()) return false;
  JsonError error;
  *key = ParseJson(spelling, &error).text;
  return error.message.empty();
}

size_t MatchedText::OpenString() const {
  constexpr size_t kNone = std::string_view::npos;
  // Continues from the last known place inside the last found string, if it has not ended since.
  for (size_t at = open_to_; open_string_ != kNone && at < bytes_.size(); at += bytes_[at] == '\\' ? 2 : 1) {
    steps_++;
    if (bytes_[at] == '"') open_string_ = kNone;
    open_to_ = at;
  }
  if (open_string_ == kNone) {
    open_string_ = StringStart(bytes_.size());
    if (open_string_ == kNone) return kNone;
    open_to_ = open_string_ + 1;
  }
  Note(open_to_);
  return open_string_;
}

const ObjectKeys* MatchedText::KeysAround(size_t open) const {
  std::vector<std::string_view> added;  // from the last to the first
  uint32_t first = 0;
  bool is_known = false;
  for (size_t at = BlanksStart(open); !is_known && at > 0 && bytes_[at - 1] == ',';) {
    const std::string_view spelling = MemberSpelling(at - 1);
    if (spelling.empty()) break;
    const size_t offset = OffsetOf(spelling);
    steps_++;
    if (const auto known = keys_.find(static_cast<uint32_t>(offset)); known != keys_.end()) {
      first = known->second.first;
      is_known = true;
    } else {
      added.push_back(spelling);
      at = BlanksStart(offset);
    }
  }
  if (added.empty() && !is_known) return nullptr;
  if (!is_known) first = static_cast<uint32_t>(OffsetOf(added.back()));
  ObjectKeys& object = objects_[first];
  while (!added.empty()) {
    const std::string_view spelling = added.back();
    const uint32_t offset = static_cast<uint32_t>(OffsetOf(spelling));
    added.pop_back();
    keys_.emplace(offset, Key{offset + static_cast<uint32_t>(spelling.size()), first});
    const auto [key, is_new] = object.offsets.emplace(KeyOf(spelling), offset);
    object.with_spellings += is_new && HasSeveralSpellings(key->first);
    Note(offset + spelling.size());
  }
  return &object;
}

MatchedText::KeysHere MatchedText::KeysSoFar() const {
  const size_t end = BlanksStart(bytes_.size());
  if (end == 0 || bytes_[end - 1] == ',' || bytes_[end - 1] == '{') return {KeysAround(end), {}, false};
  // The last member is a key, or a value with its key.
  std::string_view last = MemberSpelling(end);
  if (last.empty()) {
    const size_t start = ValueStart(end);
    if (start == std::string_view::npos || start == end || bytes_[start] != '"') return {};
    last = view().substr(start, end - start);
  }
  return {KeysAround(OffsetOf(last)), KeyOf(last), true};
}

bool MatchedText::EndsWithKey(const std::vector<std::string>& keys) const {
  const size_t open = bytes_.empty() ? std::string_view::npos : StringStart(bytes_.size() - 1);
  return open != std::string_view::npos && std::binary_search(keys.begin(), keys.end(), KeyOf(view().substr(open)));
}

bool MatchedText::RepeatsKey() const {
  const size_t open = bytes_.empty() ? std::string_view::npos : StringStart(bytes_.size() - 1);
  if (open == std::string_view::npos) return false;
  const ObjectKeys* const keys = KeysAround(open);
  if (!keys) return false;
  const auto same = keys->offsets.find(KeyOf(view().substr(open)));
  return same != keys->offsets.end() && same->second < open;
}

}  // namespace onpolicy::grammar
