// An automaton state -> what holds for the tokens of a vocabulary independent of what follows its terminal: tokens that stay inside
// of it, and where others leave. Equal expressions of all constraints on a vocabulary share one.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "mask/vocabulary.h"
#include "regex/form.h"

namespace onpolicy::grammar {

// A node of a slice's trie. `after_quote`: a quotation mark precedes its byte.
struct TriePlace {
  uint32_t slice, node;
  bool after_quote = false;
};

// The places whose bytes bring the automaton to one and the same accepting state.
struct TerminalExit {
  std::string path;                // bytes of one of the places
  bool ends = false;               // the terminal cannot go on there
  std::vector<TriePlace> places;
  std::shared_ptr<const TokenTrie> rest;  // of many places: what may follow them, under a root; its tokens are whole ones
};

struct TerminalMask {
  bool is_worth = false;         // else the rest is empty: the state has too many exits, and is walked each time
  uint32_t slices = 0;           // bit per slice that stays inside as a whole
  std::vector<uint32_t> tokens;  // that stay inside, beyond those
  std::vector<uint32_t> dense;   // slices and tokens as bits, when there are many
  std::vector<TerminalExit> exits;
  bool has_tokens() const { return !tokens.empty() || !dense.empty(); }
  size_t words() const;
};

// Merges what follows the places into the exit's `rest` where that makes less to walk.
void MergePlaces(const Vocabulary& vocabulary, TerminalExit* exit);

// Cached masks by the form of their state's expression, and what follows places by their form. The oldest are dropped. Locks.
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
  size_t words_ = 0;  // of `masks_`
};

}  // namespace onpolicy::grammar
