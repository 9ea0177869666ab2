// Tokens that would repeat a key of their object: a mask takes every key for new, and these are looked at with the text.
#include <algorithm>
#include <optional>

#include "json/text.h"
#include "json/value.h"
#include "mask/constraint.h"

namespace onpolicy::grammar {

static bool IsIn(const uint32_t* mask, uint32_t token) { return (mask[token >> 5] >> (token & 31)) & 1; }
static void Remove(uint32_t* mask, uint32_t token) { mask[token >> 5] &= ~(1u << (token & 31)); }

void Constraint::SortKeyTokens(const std::vector<uint32_t>& tokens, bool end_open_key, KeyTokens* keys) const {
  keys->end_open_key = end_open_key;
  for (uint32_t token : tokens) {
    const QuotedKind kind = vocabulary_->quoted_tokens().KindOf(token);
    keys->has_keys |= kind == QuotedKind::kKey;
    keys->end_open_key |= kind == QuotedKind::kEnd;
    if (kind == QuotedKind::kStrings) keys->strings.push_back(token);
    if (kind == QuotedKind::kUnsure) keys->unsure.push_back(token);
  }
  for (std::vector<uint32_t>* list : {&keys->strings, &keys->unsure}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

// The state after `bytes`, or kDeadState. Restores `text`.
StateId Constraint::FollowAll(StateId state, std::string_view bytes, std::string& text) {
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

// Whether a token that ends a string holds the whole of it, too.
static bool HoldsItsEnd(std::string_view written, std::string_view bytes) {
  const std::string_view end = bytes.substr(0, bytes.find('"'));
  bool holds = false;
  ForEachQuoted(bytes, [&](std::string_view string) {
    holds |= string.size() == written.size() + end.size() && string.starts_with(written) && string.ends_with(end);
  });
  return holds;
}

// Takes back tokens that would close a key which the object has already.
void Constraint::RemoveRepeatedKeys(StateId state, const Mask& found, std::string& text, SeenStrings* seen, uint32_t* mask) {
  const auto try_again = [&](uint32_t token) {
    if (IsIn(mask, token) && FollowAll(state, vocabulary_->Bytes(token), text) == kDeadState) Remove(mask, token);
  };
  const QuotedTokens& quoted = vocabulary_->quoted_tokens();
  const KeyTokens& keys = found.keys;
  if (keys.has_keys)
    for (const std::string& key : KeysSoFar(text))
      for (const auto& [hash, token] : quoted.WithKey(key)) try_again(token);
  for (uint32_t token : keys.unsure) try_again(token);
  if (!keys.strings.empty()) {
    seen->Read(text, quoted);
    if (seen->is_plain()) {
      for (const size_t string : seen->hashes())
        for (const auto& [hash, token] : quoted.WithString(string)) try_again(token);
    } else {
      for (uint32_t token : keys.strings) try_again(token);
    }
  }
  if (!keys.end_open_key) return;
  const size_t open = FindOpenString(text);
  if (open == std::string::npos) return;
  RemoveEndsOfKey(state, open, text, mask);
  // A token may end the key and hold it again.
  const std::string written = text.substr(open + 1);
  for (uint32_t token : keys.strings)
    if (HoldsItsEnd(written, vocabulary_->Bytes(token))) try_again(token);
}

// The same for the key that is being written, whose quotation mark is at `open`.
void Constraint::RemoveEndsOfKey(StateId state, size_t open, std::string& text, uint32_t* mask) {
  const std::string written = text.substr(open + 1);
  const bool is_written_plainly = written.find('\\') == std::string::npos;
  std::vector<std::string> escaped;
  for (const std::string& key : KeysBefore(text, open)) {
    if (is_written_plainly && key.starts_with(written)) RemoveEnds(state, key.substr(written.size()), text, mask);
    // Others have one spelling.
    const bool has_escapes = std::any_of(key.begin(), key.end(), [](char c) {
      return c < 0x20 || c > 0x7E || c == '"' || c == '\\' || c == '/';
    });
    if (has_escapes) escaped.push_back(key);
  }
  if (escaped.empty()) return;
  // Every token that may end a key with escapes is read.
  const QuotedTokens& quoted = vocabulary_->quoted_tokens();
  for (uint32_t token : is_written_plainly ? quoted.escaped() : vocabulary_->quote_tokens()) {
    if (!IsIn(mask, token)) continue;
    const std::string_view bytes = vocabulary_->Bytes(token);
    JsonError error;
    const std::string whole = "\"" + written + std::string(bytes);
    size_t close = 1;
    while (close < whole.size() && whole[close] != '"') close += whole[close] == '\\' ? 2 : 1;
    if (close >= whole.size()) continue;
    const std::string key = ParseJson(std::string_view(whole).substr(0, close + 1), &error).text;
    if (std::find(escaped.begin(), escaped.end(), key) != escaped.end() &&
        FollowAll(state, bytes, text) == kDeadState)
      Remove(mask, token);
  }
}

// Takes back tokens that end the key that is being written after `rest` of it, where they may not.
void Constraint::RemoveEnds(StateId state, const std::string& rest, std::string& text, uint32_t* mask) {
  std::optional<StateId> closed;
  const size_t base = text.size(), length = rest.size() + 1;
  for (const auto& [hash, token] : vocabulary_->quoted_tokens().WithEnd(rest)) {
    const std::string_view bytes = vocabulary_->Bytes(token);
    if (!IsIn(mask, token) || !bytes.starts_with(rest)) continue;
    if (!closed) closed = FollowAll(state, bytes.substr(0, length), text);
    StateId after = *closed;
    if (after != kDeadState) {
      text += bytes.substr(0, length);
      after = FollowAll(after, bytes.substr(length), text);
      text.resize(base);
    }
    if (after == kDeadState) Remove(mask, token);
  }
}

}  // namespace onpolicy::grammar
