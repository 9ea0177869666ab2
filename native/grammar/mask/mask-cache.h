// States -> masks, computed once: whole slices by their alphabets, the rest by a walk of their tries.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "grammar/mask/repeats.h"

namespace onpolicy::grammar {

struct CachedMask {
  std::vector<std::shared_ptr<const TerminalMask>> terminals;  // tokens that stay inside their terminals
  uint32_t slices = 0;           // bit per slice that is allowed as a whole
  std::vector<uint32_t> tokens;  // allowed in addition to those
  std::vector<uint32_t> dense;   // all of these as bits, when there are many
  RepeatCheck::Tokens assumed;   // tokens that depend on an assumption
  std::vector<TriePlace> uncertain;  // subtrees that depend on the text, walked for each mask
  bool is_cut = false;               // tokens are missing, because a search reached its limit
};

class MaskCache {
 public:
  MaskCache(const Vocabulary& vocabulary, Grammar& grammar, StateTable& states)
      : vocabulary_(vocabulary), grammar_(grammar), states_(states), reach_(grammar.regex()),
        walk_(vocabulary, grammar, states, reach_), repeats_(vocabulary, states) {}
  // Writes the tokens of a state, except those that a format names. Returns false if tokens are missing because the work limit was reached.
  bool Write(StateId state, MatchedText& text, uint32_t* mask);
  // Does the same from the cache, for a mask that does not depend on the text. Returns false if there is none. Changes nothing, so that
  // several threads may call it concurrently.
  bool WriteKnown(StateId state, uint32_t* mask) const;

 private:
  CachedMask* Find(StateId state, MatchedText& text);
  // Computes a mask, writes it to `mask`, and returns it.
  const CachedMask* WriteFound(StateId state, MatchedText& text, uint32_t* mask);
  void Compute(StateId state, MatchedText& text, CachedMask* mask);
  void WalkSlices(StateId state, MatchedText& text, CachedMask* mask);
  struct Terminals {
    std::vector<std::shared_ptr<const TerminalMask>> masks;
    bool is_cut = false;
  };

  // Returns the number of searches that have found no answer.
  uint64_t SearchCuts() const { return grammar_.regex().budget().cuts(Phase::kSearch); }
  // Returns the parts of an automaton state's mask. `completes`: its terminal can only end with the whole text. Valid until the next call.
  const Terminals& TerminalsOf(NodeId node, bool completes);
  void WriteBits(const CachedMask& found, uint32_t* mask) const;
  void CacheBits(const uint32_t* bits, CachedMask* mask);

  const Vocabulary& vocabulary_;
  Grammar& grammar_;
  StateTable& states_;
  TextReach reach_;
  MaskWalk walk_;
  RepeatCheck repeats_;
  std::vector<std::unique_ptr<CachedMask>> masks_;  // by state, null until computed
  CachedMask fresh_;                                // the latest mask that was not cached
  PagedList<Terminals> terminals_;                  // by automaton state, empty until needed
  PagedList<Terminals> last_terminals_;             // the same of terminals that end with the whole text
  Terminals fresh_terminals_;                       // the latest parts that were not cached
  size_t cached_words_ = 0;
  std::vector<uint32_t> tokens_, uncertain_;  // reused for each mask
  std::vector<Config> configs_;               // also reused
};

}  // namespace onpolicy::grammar
