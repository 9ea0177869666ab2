// An automaton state -> the part of its mask that is independent of what follows its terminal: tokens that stay inside it, and places where
// others leave it. Equal expressions in all constraints on a vocabulary share one.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/mask/vocabulary.h"
#include "grammar/regex/form.h"

namespace onpolicy::grammar {

// A node of a slice's trie. `after_quote`: a quotation mark precedes its byte.
struct TriePlace {
  uint32_t slice, node;
  bool after_quote = false;
};

// The places whose bytes lead the automaton to the same accepting state.
struct TerminalExit {
  std::string path;                // bytes of one of the places
  bool ends = false;               // the terminal cannot continue there
  std::vector<TriePlace> places;
  std::shared_ptr<const TokenTrie> rest;  // for many places: the nodes that may follow them, under one root; its tokens are whole ones
};

struct TerminalMask {
  bool is_worth = false;         // false: the rest is empty, because the state has too many exits and is walked each time
  uint32_t slices = 0;           // bit per slice that stays inside as a whole
  std::vector<uint32_t> tokens;  // tokens that stay inside, in addition to those
  std::vector<uint32_t> dense;   // slices and tokens as bits, when there are many
  std::vector<TerminalExit> exits;
  bool has_tokens() const { return !tokens.empty() || !dense.empty(); }
  size_t words() const;
};

// Merges the nodes behind the places into the exit's `rest` if that makes the walk shorter.
void MergePlaces(const Vocabulary& vocabulary, TerminalExit* exit);

// Masks cached by the form of their state's expression, and tries behind places by their form. Drops the oldest. Locks.
class TerminalMaskTable {
 public:
  std::shared_ptr<const TerminalMask> Find(const Form& form);
  void Add(const Form& form, std::shared_ptr<const TerminalMask> mask);
  std::shared_ptr<const TokenTrie> FindRest(const Form& places);
  void AddRest(const Form& places, const std::shared_ptr<const TokenTrie>& rest);

 private:
  struct FormHash {
    size_t operator()(const Form& form) const { return static_cast<size_t>(form.low); }
  };
  std::mutex mutex_;
  using Masks = std::unordered_map<Form, std::shared_ptr<const TerminalMask>, FormHash>;
  void Keep(const Form& form, const std::shared_ptr<const TerminalMask>& mask);

  Masks masks_, older_masks_;
  std::unordered_map<Form, std::weak_ptr<const TokenTrie>, FormHash> rests_;  // of the masks
  size_t words_ = 0;  // size of `masks_`
};

}  // namespace onpolicy::grammar
