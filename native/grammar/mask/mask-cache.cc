// Computes masks: slices first, then terminals and tries.
#include "grammar/mask/mask-cache.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::grammar {

void MaskCache::Compute(StateId state, MatchedText& text, CachedMask* mask) {
  const auto assuming = grammar_.AssumeNew();
  const uint64_t cuts = SearchCuts();
  // Handles each parse by its terminal. Parses with many exits are walked.
  tokens_.clear();
  std::vector<Config> left;
  configs_ = states_.Configs(state);
  for (const Config& config : configs_) {
    if ((config.node & kTokenSetBit) || config.node == kEpsilon) continue;
    const Terminals& terminals = TerminalsOf(config.node, grammar_.stacks().EndsAll(config.stack));
    const auto& masks = terminals.masks;
    mask->is_cut = mask->is_cut || terminals.is_cut;
    if (!std::all_of(masks.begin(), masks.end(), [](const auto& terminal) { return terminal->is_worth; })) {
      left.push_back(config);
      continue;
    }
    for (const auto& terminal : masks) {
      walk_.WalkExits(*terminal, config.node, config.stack, text, &tokens_, &mask->uncertain);
      mask->terminals.push_back(terminal);
    }
  }
  if (!left.empty()) WalkSlices(states_.Intern(&left), text, mask);
  mask->tokens.assign(tokens_.begin(), tokens_.end());
  mask->assumed = repeats_.Sort(walk_);
  mask->is_cut = mask->is_cut || SearchCuts() != cuts;
}

const MaskCache::Terminals& MaskCache::TerminalsOf(NodeId node, bool completes) {
  Terminals& known = (completes ? last_terminals_ : terminals_).Reach(node);
  if (!known.masks.empty()) return known;
  const uint64_t cuts = SearchCuts();
  fresh_terminals_.masks = walk_.WalkTerminal(node, completes);
  fresh_terminals_.is_cut = SearchCuts() != cuts;
  if (walk_.IsSpent()) return fresh_terminals_;
  return known = std::move(fresh_terminals_);
}

void MaskCache::WalkSlices(StateId state, MatchedText& text, CachedMask* mask) {
  std::vector<NodeId> nodes;
  ByteSet first;
  for (const Config& config : states_.Configs(state)) {
    nodes.push_back(config.node);
    first = first | grammar_.regex().FirstBytes(config.node);
  }
  const std::vector<Slice>& slices = vocabulary_.slices();
  for (uint32_t i = 0; i < slices.size(); i++) {
    const Slice& slice = slices[i];
    if (slice.trie.empty() || (slice.first_bytes & first).IsEmpty()) continue;
    const auto accepts_all = [&](NodeId node) { return reach_.Reach(node, slice.kind) >= slice.max_length; };
    if (slice.kind < SliceClass::kOther && (slice.first_bytes & ~first).IsEmpty() &&
        std::any_of(nodes.begin(), nodes.end(), accepts_all)) {
      mask->slices |= 1u << i;
      continue;
    }
    uncertain_.clear();
    walk_.WalkSlice(slice, first, state, text, &tokens_, &uncertain_);
    for (uint32_t node : uncertain_) mask->uncertain.push_back({i, node});
  }
}

CachedMask* MaskCache::Find(StateId state, MatchedText& text) {
  if (state < masks_.size() && masks_[state]) return masks_[state].get();
  fresh_ = {};
  Compute(state, text, &fresh_);
  // A mask whose work limit was reached lacks tokens, and is not cached. The next attempt gets further, because results computed so far are
  // cached.
  if (walk_.IsSpent()) return &fresh_;
  const size_t cost = 2 * fresh_.uncertain.size() + fresh_.assumed.words() + 4 * fresh_.terminals.size() + fresh_.tokens.size();
  if (cached_words_ + cost >= limits::kMaskWords) return &fresh_;
  cached_words_ += cost + 32;
  if (masks_.size() <= state) masks_.resize(state + 1u);
  masks_[state] = std::make_unique<CachedMask>(std::move(fresh_));
  return masks_[state].get();
}

void MaskCache::WriteBits(const CachedMask& found, uint32_t* mask) const {
  const uint32_t words = vocabulary_.mask_words();
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
    take(vocabulary_.SliceUnion(slices));
  }
  for (const auto& terminal : found.terminals)
    if (!terminal->dense.empty()) take(terminal->dense.data());
  if (!is_written) std::memset(mask, 0, words * 4);
  const auto set = [&](uint32_t token) { mask[token >> 5] |= 1u << (token & 31); };
  std::for_each(found.tokens.begin(), found.tokens.end(), set);
  for (const auto& terminal : found.terminals) std::for_each(terminal->tokens.begin(), terminal->tokens.end(), set);
}

// Caches a mask of many tokens as the bits that were written.
void MaskCache::CacheBits(const uint32_t* bits, CachedMask* mask) {
  const uint32_t words = vocabulary_.mask_words();
  if (mask->tokens.size() <= kDenseTokens || cached_words_ + words >= limits::kMaskWords) return;
  cached_words_ += words;
  mask->dense.assign(bits, bits + words);
  mask->tokens = {};
  mask->terminals = {};
}

bool MaskCache::WriteKnown(StateId state, uint32_t* mask) const {
  const CachedMask* const known = state < masks_.size() ? masks_[state].get() : nullptr;
  if (!known || known->is_cut || !known->assumed.IsEmpty() || !known->uncertain.empty()) return false;
  WriteBits(*known, mask);
  return true;
}

bool MaskCache::Write(StateId state, MatchedText& text, uint32_t* mask) {
  const Budget& budget = grammar_.regex().budget();
  const uint64_t cuts = SearchCuts();
  walk_.Begin(limits::kMaskWork);
  const CachedMask* found = WriteFound(state, text, mask);
  // Prevents a dead end: if no token was found before the work limit was reached, continues with tokens of one byte.
  const uint32_t words = vocabulary_.mask_words();
  for (unsigned round = 0; round < limits::kMaskRounds && budget.IsSpent(Phase::kStep); round++) {
    if (std::any_of(mask, mask + words, [](uint32_t bits) { return bits != 0; })) break;
    walk_.Begin(0);
    found = WriteFound(state, text, mask);
  }
  const bool is_cut = walk_.IsSpent() || found->is_cut || SearchCuts() != cuts;
  // Tokens that are rechecked must not count as dead because the mask has reached its work limit.
  grammar_.regex().BeginStep(Budget::kUnbounded);
  if (!found->assumed.IsEmpty()) repeats_.Remove(found->assumed, {state, text, mask});
  grammar_.regex().budget().Spend(text.TakeSteps());
  return !is_cut;
}

const CachedMask* MaskCache::WriteFound(StateId state, MatchedText& text, uint32_t* mask) {
  CachedMask* const found = Find(state, text);
  WriteBits(*found, mask);
  if (found != &fresh_) CacheBits(mask, found);
  tokens_.clear();
  for (const TriePlace& place : found->uncertain) walk_.WalkSubtree(place, state, text, &tokens_);
  for (uint32_t token : tokens_) mask[token >> 5] |= 1u << (token & 31);
  return found;
}

}  // namespace onpolicy::grammar
