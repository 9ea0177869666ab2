// Sets of live parses -> numbered states; a state and a byte -> the next state. Caches results that do not depend on the text.
#pragma once
#include <string>
#include <vector>

#include "base/hash-index.h"
#include "grammar/pushdown/grammar.h"

namespace onpolicy::grammar {

using StateId = uint32_t;
constexpr StateId kDeadState = 0xFFFFFFFE;

// The state after a parse has left its terminal at an accepting node.
struct Ending {
  StateId state = kDeadState;
  bool on_text = false;    // it depends on the text, so it is not cached
  bool completes = false;  // the end of the terminal can only be the end of the whole text
};

class StateTable {
 public:
  // `grammar` must outlive this.
  explicit StateTable(Grammar& grammar) : grammar_(grammar) {}

  // Sorts `configs`.
  StateId Intern(std::vector<Config>* configs);
  StateId Intern(const Config& only);
  const std::vector<Config>& Configs(StateId state) const { return states_[state]; }
  // Appends the parses of `configs` after `byte` to `out`; `text` ends with that byte.
  void Step(const std::vector<Config>& configs, uint8_t byte, const MatchedText& text, std::vector<Config>* out);
  // Appends the parses of `configs` after a token of a token set; `text` ends with the token.
  void StepToken(const std::vector<Config>& configs, uint32_t token, const MatchedText& text, std::vector<Config>* out);
  // Returns the state after one byte, or kDeadState. `text` need not end with the byte. Sets `on_text` if the result depends on it.
  StateId Follow(StateId state, uint8_t byte, MatchedText& text, bool* on_text);
  // Returns the ending of `node` under `stack`; `text` ends with the byte that led there. Records the assumptions of the result each time,
  // also from the cache.
  Ending EndingAt(NodeId node, StackId stack, const MatchedText& text);

 private:
  struct KnownEnding : Ending {
    Grammar::Assumptions assumptions;    // assumptions that it depends on
    std::vector<const KeyNames*> names;  // assumed to differ from the keys
  };

  void Merge(const Config& config, size_t from, std::vector<Config>* out);
  void Arrive(NodeId node, StackId stack, size_t from, std::vector<Config>* out);
  void Leave(const MatchedText& text, size_t from, std::vector<Config>* out);

  Grammar& grammar_;
  std::vector<std::vector<Config>> states_;
  HashIndex state_index_;    // by the hash of the parses
  HashIndex single_index_;   // by the one parse
  std::vector<KnownEnding> endings_;
  HashIndex ending_index_[2];  // by whether keys and items are assumed to be new, node and stack
  std::vector<Config> after_;  // one state, while it is made
  std::vector<Exit> exits_;    // exits of one step
};

}  // namespace onpolicy::grammar
