// States -> masks, computed once: whole slices by their alphabets, the rest by a walk of their tries.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "mask/repeats.h"

namespace onpolicy::grammar {

struct CachedMask {
  std::vector<std::shared_ptr<const TerminalMask>> terminals;  // tokens that stay inside of their terminals
  uint32_t slices = 0;           // bit per slice that is allowed as a whole
  std::vector<uint32_t> tokens;  // allowed beyond those
  std::vector<uint32_t> dense;   // all of these as bits, when there are many
  RepeatCheck::Tokens assumed;   // that rest on an assumption
  std::vector<TriePlace> uncertain;  // subtrees that depend on the text: walked each time
  bool is_cut = false;               // tokens are missing, because a search was spent
};

class MaskCache {
 public:
  MaskCache(const Vocabulary& vocabulary, Grammar& grammar, StateTable& states)
      : vocabulary_(vocabulary), grammar_(grammar), states_(states), reach_(grammar.regex()),
        walk_(vocabulary, grammar, states, reach_), repeats_(vocabulary, states) {}
  // Writes the tokens of a state, apart from those that a format names. Returns false when tokens are missing, because the
  // work was spent.
  bool Write(StateId state, std::string& text, uint32_t* mask);

 private:
  CachedMask* Find(StateId state, std::string& text);
  // Writes what one walk finds; gives what it has found.
  const CachedMask* WriteFound(StateId state, std::string& text, uint32_t* mask);
  void Compute(StateId state, std::string& text, CachedMask* mask);
  void WalkSlices(StateId state, std::string& text, CachedMask* mask);
  struct Terminals {
    std::vector<std::shared_ptr<const TerminalMask>> masks;
    bool is_cut = false;
  };

  // How many searches found no answer so far.
  uint64_t SearchCuts() const { return grammar_.regex().budget().cuts(Phase::kSearch); }
  // The parts of an automaton state's mask, until the next call.
  const Terminals& TerminalsOf(NodeId node);
  void WriteBits(const CachedMask& found, uint32_t* mask) const;
  void CacheBits(const uint32_t* bits, CachedMask* mask);

  const Vocabulary& vocabulary_;
  Grammar& grammar_;
  StateTable& states_;
  TextReach reach_;
  MaskWalk walk_;
  RepeatCheck repeats_;
  std::vector<std::unique_ptr<CachedMask>> masks_;  // by state, null until computed
  CachedMask fresh_;                                // of the latest call, where it was not cached
  PagedList<Terminals> terminals_;                  // by automaton state, empty until needed
  Terminals fresh_terminals_;                       // of the latest call, where they were not cached
  size_t cached_words_ = 0;
  std::vector<uint32_t> tokens_, uncertain_;  // of one mask at a time
  std::vector<Config> configs_;               // the same
};

}  // namespace onpolicy::grammar
