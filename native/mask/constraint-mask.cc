// The mask of a state: whole slices by a look at the automaton, the rest by a walk of their tries; then remembered.
#include <algorithm>
#include <cstring>

#include "mask/constraint.h"

namespace onpolicy::grammar {

// Remembered masks take at most this many words per constraint.
static constexpr size_t kMaskMemoWords = 8u << 20;

void Constraint::ComputeMask(StateId state, std::string& text, Mask* mask) {
  const auto assuming = grammar_->AssumeNew();
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
  mask->assumed = repeats_.Sort(walk_);
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

// The remembered mask of a state, or one computed now: in `fresh` where it is incomplete or there is no room to remember it.
Constraint::Mask* Constraint::FindMask(StateId state, std::string& text, Mask* fresh) {
  if (state < masks_.size() && masks_[state]) return masks_[state].get();
  ComputeMask(state, text, fresh);
  // A mask that ran out of work lacks tokens: the next time, what is known by now costs nothing, and it gets further.
  if (walk_.IsSpent()) return fresh;
  const size_t cost =
      2 * fresh->uncertain.size() + fresh->assumed.words() + 4 * fresh->terminals.size() + fresh->tokens.size();
  if (mask_memo_words_ + cost >= kMaskMemoWords) return fresh;
  mask_memo_words_ += cost + 32;
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

// Keeps a remembered mask of many tokens as the bits that were written.
void Constraint::KeepBits(const uint32_t* bits, Mask* mask) {
  const uint32_t words = vocabulary_->mask_words();
  if (mask->tokens.size() <= kDenseTokens || mask_memo_words_ + words >= kMaskMemoWords) return;
  mask_memo_words_ += words;
  mask->dense.assign(bits, bits + words);
  mask->tokens = {};
  mask->terminals = {};
}

bool Constraint::FillMask(StateId state, std::string& text, SeenStrings* seen, uint32_t* mask, bool* is_cut) {
  std::lock_guard<std::mutex> lock(mutex_);
  Mask fresh;
  walk_.Refuel();
  Mask* found = FindMask(state, text, &fresh);
  WriteMask(*found, mask);
  if (found != &fresh) KeepBits(mask, found);
  if (!found->uncertain.empty()) {
    tokens_.clear();
    for (const TriePlace& place : found->uncertain) walk_.WalkSubtree(place, state, text, &tokens_);
    for (uint32_t token : tokens_) mask[token >> 5] |= 1u << (token & 31);
  }
  *is_cut = walk_.IsSpent() || grammar_->regex().has_given_up();
  // Whatever the walk has left: what is looked at again must not be taken for dead.
  grammar_->regex().SearchUntil(UINT64_MAX);
  if (!found->assumed.IsEmpty()) repeats_.Remove(found->assumed, seen, {state, text, mask});
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
