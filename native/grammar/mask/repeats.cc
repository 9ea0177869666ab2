// Follows tokens again with the current text; look-ups by hash find the few tokens for which that is needed.
#include "grammar/mask/repeats.h"

#include <algorithm>
#include <optional>

#include "grammar/json/matched-text.h"
#include "grammar/json/value.h"

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

// Returns the state after `bytes`, or kDeadState. Restores `text`.
StateId RepeatCheck::Follow(StateId state, std::string_view bytes, MatchedText& text) {
  const size_t base = text.size();
  bool on_text = false;
  for (char byte : bytes) {
    state = states_.Follow(state, static_cast<uint8_t>(byte), text, &on_text);
    if (state == kDeadState) break;
    text.push_back(byte);
  }
  text.Shorten(base);
  return state;
}

void RepeatCheck::RemoveIfDead(uint32_t token, const Place& place) {
  if (IsIn(place.mask, token) && Follow(place.state, vocabulary_.Bytes(token), place.text) == kDeadState) RemoveToken(place, token);
}

void RepeatCheck::Remove(const Tokens& tokens, const Place& place) {
  if (!tokens.items.empty()) RemoveItems(tokens.items, place);
  RemoveKeys(tokens, place);
}

// Returns true if an item that begins like this, or is this, could equal the value.
static bool MayBe(std::string_view value, std::string_view begin) {
  const auto is_number = [](char c) { return c == '-' || (c >= '0' && c <= '9'); };
  if (is_number(value[0])) return is_number(begin[0]);
  if (value[0] != begin[0] || value[0] != '"') return value[0] == begin[0];
  const bool is_plain = value.find('\\') == std::string_view::npos && begin.find('\\') == std::string_view::npos;
  return !is_plain || value.starts_with(begin) || begin.starts_with(value);
}

void RepeatCheck::RemoveItems(const std::vector<ItemToken>& items, const Place& place) {
  MatchedText& text = place.text;
  const size_t base = text.size();
  const auto may_repeat = [&](std::string_view bytes, uint32_t rest) {
    if (rest == kAnyRest) return true;
    text.append(bytes.substr(0, bytes.size() - rest - 1));
    const size_t end = text.view().find_last_not_of(kBlanks) + 1, start = text.ValueStart(end);
    const size_t begin = bytes.find_first_not_of(kBlanks, bytes.size() - rest);
    const bool may_be = start == std::string::npos ||
                        MayBe(text.view().substr(start, end - start), bytes.substr(begin));
    text.Shorten(base);
    return may_be;
  };
  for (const auto& [token, rest] : items)
    if (IsIn(place.mask, token) && may_repeat(vocabulary_.Bytes(token), rest)) RemoveIfDead(token, place);
}

// Returns the key of a token of kind kKey.
static std::string_view KeyIn(std::string_view bytes) {
  const size_t open = bytes.find('"') + 1;
  return bytes.substr(open, bytes.rfind('"') - open);
}

const RepeatCheck::NameTokens& RepeatCheck::TokensOf(const KeyNames* names) {
  const auto [known, is_new] = name_tokens_.try_emplace(names);
  NameTokens& tokens = known->second;
  if (!is_new) return tokens;
  const QuotedTokens& quoted = vocabulary_.quoted_tokens();
  for (const std::string& name : *names)
    if (HasSeveralSpellings(name)) tokens.escaped.push_back(name);
  if (names->size() < quoted.keys().size()) {
    for (const std::string& name : *names)
      for (const auto& [hash, token] : quoted.WithKey(name)) tokens.keys.push_back(token);
  } else {
    for (const auto& [hash, token] : quoted.keys())
      if (std::binary_search(names->begin(), names->end(), KeyIn(vocabulary_.Bytes(token)))) tokens.keys.push_back(token);
  }
  return tokens;
}

// Removes tokens that would close a key that the object names or already has.
void RepeatCheck::RemoveKeys(const Tokens& keys, const Place& place) {
  if (keys.has_keys) {
    for (const KeyNames* names : keys.names)
      for (uint32_t token : TokensOf(names).keys) RemoveIfDead(token, place);
    RemoveKeysSoFar(place);
  }
  for (uint32_t token : keys.unsure) RemoveIfDead(token, place);
  if (keys.end_open_key)
    if (const size_t open = place.text.OpenString(); open != std::string::npos) RemoveEndsOfKey(keys.names, open, place);
}

void RepeatCheck::RemoveKeysSoFar(const Place& place) {
  const QuotedTokens& quoted = vocabulary_.quoted_tokens();
  // The look-ups below change the text temporarily, which may discard cached results about it.
  std::vector<uint32_t> tokens;
  const auto add = [&](std::string_view key) {
    for (const auto& [hash, token] : quoted.WithKey(key)) tokens.push_back(token);
  };
  const MatchedText::KeysHere here = place.text.KeysSoFar();
  if (here.has_last) add(here.last);
  if (here.keys && here.keys->offsets.size() < quoted.keys().size()) {
    for (const auto& [key, offset] : here.keys->offsets) add(key);
  } else if (here.keys) {
    for (const auto& [hash, token] : quoted.keys())
      if (IsIn(place.mask, token) && here.keys->offsets.contains(KeyIn(vocabulary_.Bytes(token)))) tokens.push_back(token);
  }
  for (uint32_t token : tokens) RemoveIfDead(token, place);
}

// Does the same for the key being written, whose quotation mark is at `open`.
void RepeatCheck::RemoveEndsOfKey(const std::vector<const KeyNames*>& names, size_t open, const Place& place) {
  const std::string written(place.text.view().substr(open + 1));
  const bool is_written_plainly = written.find('\\') == std::string::npos;
  const ObjectKeys* const keys = place.text.KeysAround(open);
  const auto is_before = [&](std::string_view key) {
    if (!keys) return false;
    const auto found = keys->offsets.find(key);
    return found != keys->offsets.end() && found->second < open;
  };
  const auto is_named = [](const KeyNames& list, std::string_view key) {
    return std::binary_search(list.begin(), list.end(), key);
  };
  const auto itself = [](const std::string& name) -> const std::string& { return name; };
  std::set<std::string> ends;
  if (is_written_plainly) {
    if (keys)
      AddEnds(keys->offsets.lower_bound(written), keys->offsets.end(), written,
              [](const auto& entry) -> const std::string& { return entry.first; }, is_before, &ends);
    for (const KeyNames* list : names)
      AddEnds(std::lower_bound(list->begin(), list->end(), written), list->end(), written, itself,
              [&](std::string_view key) { return is_named(*list, key); }, &ends);
  }
  bool has_spellings = keys && keys->with_spellings > 0;
  for (const KeyNames* list : names) has_spellings = has_spellings || !TokensOf(list).escaped.empty();
  std::vector<uint32_t> escaped;
  if (has_spellings)
    escaped = EscapedEnds(
        written,
        [&](std::string_view key) {
          const auto has = [&](const KeyNames* list) { return is_named(*list, key); };
          return is_before(key) || std::any_of(names.begin(), names.end(), has);
        },
        place);
  for (const std::string& end : ends) RemoveEnds(end, place);
  for (uint32_t token : escaped) RemoveIfDead(token, place);
}

// Adds the rest of each key that begins with the written text and that a token may complete. Iterates over the keys, or over the tokens if
// there are fewer.
template <typename Entry, typename KeyOf, typename Has>
void RepeatCheck::AddEnds(Entry from, Entry last, const std::string& written, const KeyOf& key_of, const Has& has_key,
                          std::set<std::string>* ends) const {
  const auto& by_end = vocabulary_.quoted_tokens().ends();
  size_t keys = 0;
  for (Entry entry = from; entry != last && key_of(*entry).starts_with(written); ++entry) {
    if (++keys > by_end.size()) break;
    if (has_key(key_of(*entry))) ends->insert(key_of(*entry).substr(written.size()));
  }
  if (keys <= by_end.size()) return;
  for (const auto& [hash, token] : by_end) {
    const std::string_view bytes = vocabulary_.Bytes(token);
    const std::string end(bytes.substr(0, bytes.find('"')));
    if (has_key(written + end)) ends->insert(end);
  }
}

// Returns the tokens that complete one of some keys with an escape. Every candidate token is read.
template <typename Has>
std::vector<uint32_t> RepeatCheck::EscapedEnds(const std::string& written, const Has& has_key, const Place& place) const {
  const bool is_written_plainly = written.find('\\') == std::string::npos;
  std::vector<uint32_t> tokens;
  for (uint32_t token : is_written_plainly ? vocabulary_.quoted_tokens().escaped() : vocabulary_.quote_tokens()) {
    if (!IsIn(place.mask, token)) continue;
    JsonError error;
    const std::string whole = "\"" + written + std::string(vocabulary_.Bytes(token));
    size_t close = 1;
    while (close < whole.size() && whole[close] != '"') close += whole[close] == '\\' ? 2 : 1;
    if (close >= whole.size()) continue;
    if (has_key(ParseJson(std::string_view(whole).substr(0, close + 1), &error).text)) tokens.push_back(token);
  }
  return tokens;
}

// Removes tokens that complete the key being written with `rest`.
void RepeatCheck::RemoveEnds(std::string_view rest, const Place& place) {
  std::optional<StateId> closed;
  const size_t base = place.text.size(), length = rest.size() + 1;
  for (const auto& [hash, token] : vocabulary_.quoted_tokens().WithEnd(rest)) {
    const std::string_view bytes = vocabulary_.Bytes(token);
    if (!IsIn(place.mask, token) || !bytes.starts_with(rest)) continue;
    if (!closed) closed = Follow(place.state, bytes.substr(0, length), place.text);
    StateId after = *closed;
    if (after != kDeadState) {
      place.text.append(bytes.substr(0, length));
      after = Follow(after, bytes.substr(length), place.text);
      place.text.Shorten(base);
    }
    if (after == kDeadState) RemoveToken(place, token);
  }
}

}  // namespace onpolicy::grammar
