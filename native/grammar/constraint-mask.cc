// The mask of a state: whole slices by a look at the automaton, the rest by a walk of their tries; then remembered.
#include <algorithm>
#include <cstring>

#include "grammar/constraint.h"
#include "grammar/json-value.h"

namespace onpolicy::grammar {

// Remembered masks take at most this many words per constraint.
static constexpr size_t kMaskMemoWords = 8u << 20;

void Constraint::ComputeMask(StateId state, std::string& text, Mask* mask) {
  // The readings one by one; those with many exits are left for a walk of their own.
  tokens_.clear();
  std::vector<Config> left;
  for (const Config& config : std::vector<Config>(states_.Configs(state))) {
    if ((config.node & kTokenSetBit) || config.node == kEpsilon) continue;
    std::shared_ptr<const TerminalMask> terminal = TerminalOf(config.node);
    if (!terminal->is_worth) {
      left.push_back(config);
      continue;
    }
    walk_.WalkExits(*terminal, config.node, config.stack, text, &tokens_, &mask->terminals, &mask->uncertain);
    mask->terminals.push_back(std::move(terminal));
  }
  if (!left.empty()) WalkSlices(states_.Intern(std::move(left)), text, mask);
  mask->tokens.assign(tokens_.begin(), tokens_.end());
  SortKeyTokens(walk_.key_tokens(), mask);
}

void Constraint::SortKeyTokens(std::vector<uint32_t> tokens, Mask* mask) const {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (uint32_t token : tokens) {
    const std::string_view bytes = vocabulary_->Bytes(token);
    const size_t open = bytes.find('"'), close = bytes.find('"', open + 1);
    // With two quotation marks, the key is between them and belongs to the object that the text is in.
    if (std::count(bytes.begin(), bytes.end(), '"') == 2 && bytes.find_first_of("{}[]\\") == std::string_view::npos) {
      mask->keyed_tokens.emplace_back(bytes.substr(open + 1, close - open - 1), token);
    } else {
      mask->key_tokens.push_back(token);
    }
  }
  std::sort(mask->keyed_tokens.begin(), mask->keyed_tokens.end());
}

std::shared_ptr<const TerminalMask> Constraint::TerminalOf(NodeId node) {
  if (terminals_.size() <= node) terminals_.resize(grammar_->regex().size());
  if (terminals_[node]) return terminals_[node];
  std::shared_ptr<const TerminalMask> terminal = walk_.WalkTerminal(node);
  if (!walk_.IsSpent()) terminals_[node] = terminal;
  return terminal;
}

void Constraint::WalkSlices(StateId state, std::string& text, Mask* mask) {
  std::vector<NodeId> nodes;
  ByteSet first;
  for (const Config& config : states_.Configs(state)) {
    nodes.push_back(config.node);
    first = first | grammar_->regex().FirstBytes(config.node);
  }
  const auto is_inside = [&](NodeId node) { return reach_.IsInsideString(node); };
  const std::vector<Slice>& slices = vocabulary_->slices();
  for (uint32_t i = 0; i < slices.size(); i++) {
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
    for (uint32_t node : uncertain_) mask->uncertain.push_back({i, node});
  }
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

// Whether a token may hold a whole key which an object has already: then it stands between quotation marks in the text,
// or twice in the token, as long as both spell it plainly.
static bool MayRepeat(std::string_view token, std::string_view text) {
  if (token.find('\\') != std::string_view::npos) return true;
  std::vector<std::string_view> strings;
  for (size_t open = token.find('"'), close; open != std::string_view::npos; open = close) {
    close = token.find('"', open + 1);
    if (close == std::string_view::npos) break;
    const std::string_view quoted = token.substr(open, close + 1 - open);
    if (text.find(quoted) != std::string_view::npos) return true;
    if (std::find(strings.begin(), strings.end(), quoted) != strings.end()) return true;
    strings.push_back(quoted);
  }
  return strings.empty();
}

// Takes back tokens that would close a key which the object has already.
void Constraint::RemoveRepeatedKeys(StateId state, const Mask& found, std::string& text, uint32_t* mask) {
  const auto try_again = [&](uint32_t token) {
    if (((mask[token >> 5] >> (token & 31)) & 1) && !IsAlive(state, vocabulary_->Bytes(token), text))
      mask[token >> 5] &= ~(1u << (token & 31));
  };
  if (!found.keyed_tokens.empty())
    for (const std::string& key : KeysBefore(text, text.size())) {
      const auto first = std::lower_bound(found.keyed_tokens.begin(), found.keyed_tokens.end(),
                                          std::make_pair(std::string_view(key), 0u));
      for (auto at = first; at != found.keyed_tokens.end() && at->first == key; at++) try_again(at->second);
    }
  const bool is_plain_text =
      found.key_tokens.empty() || (text.find("\\u") == std::string::npos && text.find("\\/") == std::string::npos);
  for (uint32_t token : found.key_tokens)
    if (!is_plain_text || MayRepeat(vocabulary_->Bytes(token), text)) try_again(token);
  if (!found.assumes_new_key) return;
  // The key that is being written.
  const size_t open = FindOpenString(text);
  if (open == std::string::npos) return;
  const std::string written = text.substr(open + 1);
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
  grammar_->AssumeNewKeys(true);
  ComputeMask(state, text, fresh);
  fresh->assumes_new_key = walk_.took_open_key();
  grammar_->AssumeNewKeys(false);
  // A mask that ran out of work lacks tokens: the next time, what is known by now costs nothing, and it gets further.
  if (walk_.IsSpent()) return fresh;
  const size_t cost = 2 * fresh->uncertain.size() + 6 * fresh->keyed_tokens.size() + fresh->key_tokens.size() +
                      4 * fresh->terminals.size() +
                      (fresh->tokens.size() > kDenseTokens ? words : fresh->tokens.size());
  if (mask_memo_words_ + cost >= kMaskMemoWords) return fresh;
  mask_memo_words_ += cost + 32;
  if (fresh->tokens.size() > kDenseTokens) {
    std::vector<uint32_t> bits(words);
    WriteMask(*fresh, bits.data());
    fresh->dense = std::move(bits);
    fresh->tokens = {};
    fresh->terminals = {};
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

void Constraint::WriteMask(const Mask& found, uint32_t* mask) const {
  const uint32_t words = vocabulary_->mask_words();
  bool is_written = false;
  const auto take = [&](const uint32_t* bits) {
    if (!is_written) {
      std::memcpy(mask, bits, words * 4);
    } else {
      for (uint32_t word = 0; word < words; word++) mask[word] |= bits[word];
    }
    is_written = true;
  };
  uint32_t slices = found.slices;
  for (const auto& terminal : found.terminals)
    if (terminal->dense.empty()) slices |= terminal->slices;
  if (!found.dense.empty()) {
    take(found.dense.data());
  } else if (slices) {
    take(vocabulary_->SliceUnion(slices));
  }
  for (const auto& terminal : found.terminals)
    if (!terminal->dense.empty()) take(terminal->dense.data());
  if (!is_written) std::memset(mask, 0, words * 4);
  const auto set = [&](uint32_t token) { mask[token >> 5] |= 1u << (token & 31); };
  std::for_each(found.tokens.begin(), found.tokens.end(), set);
  for (const auto& terminal : found.terminals) std::for_each(terminal->tokens.begin(), terminal->tokens.end(), set);
}

bool Constraint::FillMask(StateId state, std::string& text, uint32_t* mask, bool* is_cut) {
  std::lock_guard<std::mutex> lock(mutex_);
  Mask fresh;
  walk_.Refuel();
  const Mask* found = FindMask(state, text, &fresh);
  WriteMask(*found, mask);
  if (!found->uncertain.empty()) {
    tokens_.clear();
    for (const TriePlace& place : found->uncertain) walk_.WalkSubtree(place, state, text, &tokens_);
    for (uint32_t token : tokens_) mask[token >> 5] |= 1u << (token & 31);
  }
  *is_cut = walk_.IsSpent() || grammar_->regex().has_given_up();
  if (found->assumes_new_key || !found->keyed_tokens.empty() || !found->key_tokens.empty())
    RemoveRepeatedKeys(state, *found, text, mask);
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
