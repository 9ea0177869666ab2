// Tokens are followed again with the text; look-ups by hash find the few that need it.
#include "mask/repeats.h"

#include <algorithm>
#include <optional>

#include "json/text.h"
#include "json/value.h"

namespace onpolicy::grammar {

static constexpr const char* kBlanks = " \t\n\r";

static bool IsIn(const uint32_t* mask, uint32_t token) { return (mask[token >> 5] >> (token & 31)) & 1; }
static void RemoveToken(const RepeatCheck::Place& place, uint32_t token) { place.mask[token >> 5] &= ~(1u << (token & 31)); }

RepeatCheck::Tokens RepeatCheck::Sort(const MaskWalk& walk) const {
  Tokens result;
  result.end_open_key = walk.took_open_key();
  result.names = walk.assumed_names();
  for (uint32_t token : walk.key_tokens()) {
    const QuotedKind kind = vocabulary_.quoted_tokens().KindOf(token);
    result.has_keys |= kind == QuotedKind::kKey;
    result.end_open_key |= kind == QuotedKind::kEnd;
    if (kind == QuotedKind::kUnsure) result.unsure.push_back(token);
  }
  std::sort(result.unsure.begin(), result.unsure.end());
  result.unsure.erase(std::unique(result.unsure.begin(), result.unsure.end()), result.unsure.end());
  std::vector<ItemToken> items = walk.item_tokens();
  std::sort(items.begin(), items.end());
  for (const ItemToken& entry : items) {
    if (result.items.empty() || result.items.back().token != entry.token) {
      result.items.push_back(entry);
    } else if (result.items.back().rest != entry.rest) {
      result.items.back().rest = kAnyRest;
    }
  }
  return result;
}

// The state after `bytes`, or kDeadState. Restores `text`.
StateId RepeatCheck::Follow(StateId state, std::string_view bytes, std::string& text) {
  const size_t base = text.size();
  bool on_text = false;
  for (char byte : bytes) {
    state = states_.Follow(state, static_cast<uint8_t>(byte), text, &on_text);
    if (state == kDeadState) break;
    text.push_back(byte);
  }
  text.resize(base);
  return state;
}

void RepeatCheck::RemoveIfDead(uint32_t token, const Place& place) {
  if (IsIn(place.mask, token) && Follow(place.state, vocabulary_.Bytes(token), place.text) == kDeadState) RemoveToken(place, token);
}

void RepeatCheck::Remove(const Tokens& tokens, const Place& place) {
  if (!tokens.items.empty()) RemoveItems(tokens.items, place);
  RemoveKeys(tokens, place);
}

// Whether an item that begins like this, or the whole of it, could be the value.
static bool MayBe(std::string_view value, std::string_view begin) {
  const auto is_number = [](char c) { return c == '-' || (c >= '0' && c <= '9'); };
  if (is_number(value[0])) return is_number(begin[0]);
  if (value[0] != begin[0] || value[0] != '"') return value[0] == begin[0];
  const bool is_plain = value.find('\\') == std::string_view::npos && begin.find('\\') == std::string_view::npos;
  return !is_plain || value.starts_with(begin) || begin.starts_with(value);
}

void RepeatCheck::RemoveItems(const std::vector<ItemToken>& items, const Place& place) {
  std::string& text = place.text;
  const size_t base = text.size();
  const auto may_repeat = [&](std::string_view bytes, uint32_t rest) {
    if (rest == kAnyRest) return true;
    text += bytes.substr(0, bytes.size() - rest - 1);
    const size_t end = text.find_last_not_of(kBlanks) + 1, start = FindValueStart(text, end);
    const size_t begin = bytes.find_first_not_of(kBlanks, bytes.size() - rest);
    const bool may_be = start == std::string::npos ||
                        MayBe(std::string_view(text).substr(start, end - start), bytes.substr(begin));
    text.resize(base);
    return may_be;
  };
  for (const auto& [token, rest] : items)
    if (IsIn(place.mask, token) && may_repeat(vocabulary_.Bytes(token), rest)) RemoveIfDead(token, place);
}

static bool HasSeveralSpellings(const std::string& key) {
  return std::any_of(key.begin(), key.end(), [](char c) { return c < 0x20 || c > 0x7E || c == '"' || c == '\\' || c == '/'; });
}

const RepeatCheck::NameTokens& RepeatCheck::TokensOf(const KeyNames* names) {
  const auto [known, is_new] = name_tokens_.try_emplace(names);
  NameTokens& tokens = known->second;
  if (!is_new) return tokens;
  const QuotedTokens& quoted = vocabulary_.quoted_tokens();
  for (const std::string& name : *names) {
    for (const auto& [hash, token] : quoted.WithKey(name)) tokens.keys.push_back(token);
    if (HasSeveralSpellings(name)) tokens.escaped.push_back(name);
  }
  return tokens;
}

// Tokens that would close a key which the object names or has already.
void RepeatCheck::RemoveKeys(const Tokens& keys, const Place& place) {
  if (keys.has_keys) {
    for (const KeyNames* names : keys.names)
      for (uint32_t token : TokensOf(names).keys) RemoveIfDead(token, place);
    for (const std::string& key : KeysSoFar(place.text))
      for (const auto& [hash, token] : vocabulary_.quoted_tokens().WithKey(key)) RemoveIfDead(token, place);
  }
  for (uint32_t token : keys.unsure) RemoveIfDead(token, place);
  if (!keys.end_open_key) return;
  if (const size_t open = FindOpenString(place.text); open != std::string::npos) RemoveEndsOfKey(keys.names, open, place);
}

// The same for the key that is being written, whose quotation mark is at `open`.
void RepeatCheck::RemoveEndsOfKey(const std::vector<const KeyNames*>& names, size_t open, const Place& place) {
  const std::string written = place.text.substr(open + 1);
  const bool is_written_plainly = written.find('\\') == std::string::npos;
  std::vector<std::string> escaped;
  for (const std::string& key : KeysBefore(place.text, open)) {
    if (is_written_plainly && key.starts_with(written)) RemoveEnds(key.substr(written.size()), place);
    // Others have one spelling.
    if (HasSeveralSpellings(key)) escaped.push_back(key);
  }
  for (const KeyNames* list : names) {
    for (auto name = std::lower_bound(list->begin(), list->end(), written);
         is_written_plainly && name != list->end() && name->starts_with(written); name++)
      RemoveEnds(name->substr(written.size()), place);
    for (const std::string& name : TokensOf(list).escaped)
      if (!is_written_plainly || name.starts_with(written)) escaped.push_back(name);
  }
  if (!escaped.empty()) RemoveEscapedEnds(written, escaped, place);
}

// Every token that may end a key with escapes is read.
void RepeatCheck::RemoveEscapedEnds(const std::string& written, const std::vector<std::string>& keys, const Place& place) {
  const bool is_written_plainly = written.find('\\') == std::string::npos;
  for (uint32_t token : is_written_plainly ? vocabulary_.quoted_tokens().escaped() : vocabulary_.quote_tokens()) {
    if (!IsIn(place.mask, token)) continue;
    JsonError error;
    const std::string whole = "\"" + written + std::string(vocabulary_.Bytes(token));
    size_t close = 1;
    while (close < whole.size() && whole[close] != '"') close += whole[close] == '\\' ? 2 : 1;
    if (close >= whole.size()) continue;
    const std::string key = ParseJson(std::string_view(whole).substr(0, close + 1), &error).text;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) RemoveIfDead(token, place);
  }
}

// Tokens that end the key that is being written after `rest` of it.
void RepeatCheck::RemoveEnds(const std::string& rest, const Place& place) {
  std::optional<StateId> closed;
  const size_t base = place.text.size(), length = rest.size() + 1;
  for (const auto& [hash, token] : vocabulary_.quoted_tokens().WithEnd(rest)) {
    const std::string_view bytes = vocabulary_.Bytes(token);
    if (!IsIn(place.mask, token) || !bytes.starts_with(rest)) continue;
    if (!closed) closed = Follow(place.state, bytes.substr(0, length), place.text);
    StateId after = *closed;
    if (after != kDeadState) {
      place.text += bytes.substr(0, length);
      after = Follow(after, bytes.substr(length), place.text);
      place.text.resize(base);
    }
    if (after == kDeadState) RemoveToken(place, token);
  }
}

}  // namespace onpolicy::grammar
