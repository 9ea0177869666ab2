// Tokens that would repeat a key of their object: a mask takes every key for new, and these are looked at with the text.
#include <algorithm>
#include <functional>

#include "grammar/constraint.h"
#include "grammar/json-value.h"

namespace onpolicy::grammar {

static size_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }

// Calls `visit` with what stands between each quotation mark and the next.
template <typename Visit>
static void ForEachQuoted(std::string_view text, Visit visit) {
  size_t open = text.find('"');
  if (open == std::string_view::npos) return;
  for (size_t close; (close = text.find('"', open + 1)) != std::string_view::npos; open = close)
    visit(text.substr(open + 1, close - open - 1));
}

Constraint::KeyTokens Constraint::SortKeyTokens(std::vector<uint32_t> tokens) const {
  KeyTokens keys;
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  std::vector<size_t> strings;
  for (uint32_t token : tokens) {
    const std::string_view bytes = vocabulary_->Bytes(token);
    strings.clear();
    ForEachQuoted(bytes, [&](std::string_view string) { strings.push_back(HashOf(string)); });
    // With two quotation marks, the key is between them and belongs to the object that the text is in.
    if (strings.size() == 1 && bytes.find_first_of("{}[]\\") == std::string_view::npos) {
      keys.keyed.emplace_back(strings[0], token);
      continue;
    }
    keys.others.push_back(token);
    // A key that an object has already stands between quotation marks in the text, or twice in the token, as long as
    // both spell it plainly.
    std::sort(strings.begin(), strings.end());
    if (strings.empty() || bytes.find('\\') != std::string_view::npos ||
        std::adjacent_find(strings.begin(), strings.end()) != strings.end()) {
      keys.unsure.push_back(token);
    } else {
      for (size_t string : strings) keys.quoted.emplace_back(string, token);
    }
  }
  std::sort(keys.keyed.begin(), keys.keyed.end());
  std::sort(keys.quoted.begin(), keys.quoted.end());
  return keys;
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

// Takes back tokens that would close a key which the object has already.
void Constraint::RemoveRepeatedKeys(StateId state, const Mask& found, std::string& text, uint32_t* mask) {
  const auto is_allowed = [&](uint32_t token) { return (mask[token >> 5] >> (token & 31)) & 1; };
  const auto try_again = [&](uint32_t token) {
    if (is_allowed(token) && FollowAll(state, vocabulary_->Bytes(token), text) == kDeadState)
      mask[token >> 5] &= ~(1u << (token & 31));
  };
  const auto try_all = [&](const std::vector<QuotedToken>& tokens, std::string_view string) {
    const QuotedToken least{HashOf(string), 0};
    for (auto at = std::lower_bound(tokens.begin(), tokens.end(), least); at != tokens.end() && at->first == least.first; at++)
      try_again(at->second);
  };
  const KeyTokens& keys = found.keys;
  if (!keys.keyed.empty())
    for (const std::string& key : KeysBefore(text, text.size())) try_all(keys.keyed, key);
  if (!keys.others.empty()) {
    const bool is_plain_text = text.find("\\u") == std::string::npos && text.find("\\/") == std::string::npos;
    for (uint32_t token : is_plain_text ? keys.unsure : keys.others) try_again(token);
    if (is_plain_text && !keys.quoted.empty())
      ForEachQuoted(text, [&](std::string_view string) { try_all(keys.quoted, string); });
  }
  if (!found.assumes_new_key) return;
  if (const size_t open = FindOpenString(text); open != std::string::npos) RemoveEndsOfKey(state, open, text, mask);
}

// The same for the key that is being written, whose quotation mark is at `open`.
void Constraint::RemoveEndsOfKey(StateId state, size_t open, std::string& text, uint32_t* mask) {
  const auto is_allowed = [&](uint32_t token) { return (mask[token >> 5] >> (token & 31)) & 1; };
  const auto remove = [&](uint32_t token) { mask[token >> 5] &= ~(1u << (token & 31)); };
  const std::string written = text.substr(open + 1);
  std::vector<std::string> escaped;
  for (const std::string& key : KeysBefore(text, open)) {
    const bool is_plain = std::all_of(key.begin(), key.end(), [](char c) {
      return c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '/';
    });
    if (!is_plain) escaped.push_back(key);
    // A plain key has one spelling.
    if (!is_plain || !key.starts_with(written)) continue;
    const std::string rest = key.substr(written.size()) + "\"";
    const auto [begin, end] = vocabulary_->WithPrefix(rest);
    if (begin == end) continue;
    const StateId closed = FollowAll(state, rest, text);
    const size_t base = text.size();
    text += rest;
    for (size_t at = begin; at < end; at++) {
      const uint32_t token = vocabulary_->SortedToken(at);
      if (is_allowed(token) && (closed == kDeadState || FollowAll(closed, vocabulary_->Bytes(token).substr(rest.size()),
                                                                  text) == kDeadState))
        remove(token);
    }
    text.resize(base);
  }
  if (escaped.empty()) return;
  // Of other keys, every token that ends one is read.
  for (uint32_t token : vocabulary_->quote_tokens()) {
    if (!is_allowed(token)) continue;
    const std::string_view bytes = vocabulary_->Bytes(token);
    JsonError error;
    const std::string whole = "\"" + written + std::string(bytes);
    size_t close = 1;
    while (close < whole.size() && whole[close] != '"') close += whole[close] == '\\' ? 2 : 1;
    if (close >= whole.size()) continue;
    const std::string key = ParseJson(std::string_view(whole).substr(0, close + 1), &error).text;
    if (std::find(escaped.begin(), escaped.end(), key) != escaped.end() &&
        FollowAll(state, bytes, text) == kDeadState)
      remove(token);
  }
}

}  // namespace onpolicy::grammar
