// The mask of a state: whole slices by a look at the automaton, the rest by a walk of their tries; then remembered.
#include <algorithm>
#include <cstring>

#include "grammar/constraint.h"
#include "grammar/json-value.h"

namespace onpolicy::grammar {

// Remembered masks take at most this many words per constraint; one with more tokens is kept as bits.
static constexpr size_t kMaskMemoWords = 8u << 20;
static constexpr size_t kDenseTokens = 1000;

void Constraint::ComputeMask(StateId state, std::string& text, Mask* mask) {
  std::vector<NodeId> nodes;
  ByteSet first;
  for (const Config& config : states_.Configs(state))
    if (!(config.node & kTokenSetBit) && config.node != kEpsilon) {
      nodes.push_back(config.node);
      first = first | grammar_->regex().FirstBytes(config.node);
    }
  if (nodes.empty()) return;
  const auto is_inside = [&](NodeId node) { return reach_.IsInsideString(node); };
  tokens_.clear();
  const std::vector<Slice>& slices = vocabulary_->slices();
  for (size_t i = 0; i < slices.size(); i++) {
    const Slice& slice = slices[i];
    if (slice.trie.empty() || (slice.first_bytes & first).IsEmpty()) continue;
    if (slice.kind == SliceClass::kBroken && std::all_of(nodes.begin(), nodes.end(), is_inside)) continue;
    const auto takes_all = [&](NodeId node) { return reach_.Reach(node, slice.kind) >= slice.max_length; };
    if (slice.kind < SliceClass::kBroken && (slice.first_bytes & ~first).IsEmpty() &&
        std::any_of(nodes.begin(), nodes.end(), takes_all)) {
      mask->slices |= 1u << i;
      continue;
    }
    uncertain_.clear();
    walk_.WalkSlice(slice, first, state, text, &tokens_, &uncertain_);
    for (uint32_t node : uncertain_) mask->uncertain.emplace_back(static_cast<uint32_t>(i), node);
  }
  mask->tokens.assign(tokens_.begin(), tokens_.end());
}

// Whether some text goes on after `bytes`. Restores `text`.
bool Constraint::IsAlive(StateId state, std::string_view bytes, std::string& text) {
  const size_t base = text.size();
  std::vector<Config> current = states_.Configs(state), following;
  for (char byte : bytes) {
    text.push_back(byte);
    following.clear();
    states_.Step(current, static_cast<uint8_t>(byte), text, &following);
    current.swap(following);
    if (current.empty()) break;
  }
  text.resize(base);
  return !current.empty();
}

// Takes back tokens that would close a key which the object has already.
void Constraint::RemoveRepeatedKeys(StateId state, std::string& text, uint32_t* mask) {
  const size_t open = FindOpenString(text);
  if (open == std::string::npos) return;
  const std::string written = text.substr(open + 1);
  const auto try_again = [&](uint32_t token) {
    if (((mask[token >> 5] >> (token & 31)) & 1) && !IsAlive(state, vocabulary_->Bytes(token), text))
      mask[token >> 5] &= ~(1u << (token & 31));
  };
  std::vector<std::string> escaped;
  for (const std::string& key : KeysBefore(text, open)) {
    const bool is_plain = std::all_of(key.begin(), key.end(), [](char c) {
      return c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '/';
    });
    if (!is_plain) escaped.push_back(key);
    // A plain key has one spelling.
    if (!is_plain || !key.starts_with(written)) continue;
    const auto [begin, end] = vocabulary_->WithPrefix(key.substr(written.size()) + "\"");
    for (size_t at = begin; at < end; at++) try_again(vocabulary_->SortedToken(at));
  }
  if (escaped.empty()) return;
  // Of other keys, every token that ends one is read.
  for (uint32_t token : vocabulary_->quote_tokens()) {
    if (!((mask[token >> 5] >> (token & 31)) & 1)) continue;
    const std::string_view bytes = vocabulary_->Bytes(token);
    JsonError error;
    const std::string whole = "\"" + written + std::string(bytes);
    size_t close = 1;
    while (close < whole.size() && whole[close] != '"') close += whole[close] == '\\' ? 2 : 1;
    if (close >= whole.size()) continue;
    const std::string key = ParseJson(std::string_view(whole).substr(0, close + 1), &error).text;
    if (std::find(escaped.begin(), escaped.end(), key) != escaped.end()) try_again(token);
  }
}

// The remembered mask of a state, or one computed now: in `fresh` where it is incomplete or there is no room to remember it.
const Constraint::Mask* Constraint::FindMask(StateId state, std::string& text, Mask* fresh) {
  if (state < masks_.size() && masks_[state]) return masks_[state].get();
  const uint32_t words = vocabulary_->mask_words();
  const uint64_t assumptions = grammar_->assumptions();
  grammar_->AssumeNewKeysBefore(text.size());
  ComputeMask(state, text, fresh);
  fresh->assumes_new_key = assumptions != grammar_->assumptions();
  grammar_->AssumeNewKeysBefore(0);
  // A mask that ran out of work lacks tokens: the next time, what is known by now costs nothing, and it gets further.
  if (walk_.IsSpent()) return fresh;
  const size_t cost = fresh->uncertain.size() + (fresh->tokens.size() > kDenseTokens ? words : fresh->tokens.size());
  if (mask_memo_words_ + cost >= kMaskMemoWords) return fresh;
  mask_memo_words_ += cost + 32;
  if (fresh->tokens.size() > kDenseTokens) {
    const uint32_t* slices = vocabulary_->SliceUnion(fresh->slices);
    fresh->dense.assign(slices, slices + words);
    for (uint32_t token : fresh->tokens) fresh->dense[token >> 5] |= 1u << (token & 31);
    fresh->tokens = {};
  }
  if (masks_.size() <= state) masks_.resize(state + 1u);
  masks_[state] = std::make_unique<Mask>(std::move(*fresh));
  return masks_[state].get();
}

// Adds the tokens that a format names. `open`: there are such.
void Constraint::AllowNamedTokens(StateId state, uint32_t* mask, bool* open) const {
  for (const Config& config : states_.Configs(state)) {
    if (!(config.node & kTokenSetBit)) continue;
    *open = true;
    const TokenSet& set = grammar_->TokensOf(config.node & ~kTokenSetBit);
    if (!set.inverted) {
      for (uint32_t token : set.tokens)
        if (token < vocabulary_->size()) mask[token >> 5] |= 1u << (token & 31);
    } else {
      for (uint32_t token = 0; token < vocabulary_->size(); token++)
        if (set.Has(token) && !vocabulary_->IsEos(token)) mask[token >> 5] |= 1u << (token & 31);
    }
  }
}

bool Constraint::FillMask(StateId state, std::string& text, uint32_t* mask) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t words = vocabulary_->mask_words();
  Mask fresh;
  walk_.Refuel();
  const Mask* found = FindMask(state, text, &fresh);
  if (!found->dense.empty()) {
    std::memcpy(mask, found->dense.data(), words * 4);
  } else if (found->slices) {
    std::memcpy(mask, vocabulary_->SliceUnion(found->slices), words * 4);
  } else {
    std::memset(mask, 0, words * 4);
  }
  for (uint32_t token : found->tokens) mask[token >> 5] |= 1u << (token & 31);
  if (!found->uncertain.empty()) {
    tokens_.clear();
    for (const auto& [slice, node] : found->uncertain)
      walk_.WalkSubtree(vocabulary_->slices()[slice], node, state, text, &tokens_);
    for (uint32_t token : tokens_) mask[token >> 5] |= 1u << (token & 31);
  }
  if (found->assumes_new_key) RemoveRepeatedKeys(state, text, mask);
  bool complete = state == ended_;
  bool open = false;
  for (const Config& config : states_.Configs(state)) complete = complete || config.node == kEpsilon;
  AllowNamedTokens(state, mask, &open);
  if (complete)
    for (uint32_t token : vocabulary_->eos_tokens())
      if (token < vocabulary_->size()) mask[token >> 5] |= 1u << (token & 31);
  if (!open && !complete) return false;
  for (uint32_t token = 0; token < vocabulary_->size(); token++) {
    if (!((mask[token >> 5] >> (token & 31)) & 1)) return false;
  }
  return true;
}

}  // namespace onpolicy::grammar
