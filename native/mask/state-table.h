// Sets of live parses -> numbered states; a state and a byte -> the next state. Caches what does not depend on the text.
#pragma once
#include <string>
#include <vector>

#include "base/hash-index.h"
#include "pushdown/grammar.h"

namespace onpolicy::grammar {

using StateId = uint32_t;
constexpr StateId kDeadState = 0xFFFFFFFE;

// The state after a parse has left its terminal at an accepting node.
struct Ending {
  StateId state = kDeadState;
  bool on_text = false;    // it must be worked out each time
  bool completes = false;  // the end of the terminal can only be the end of the whole text
};

class StateTable {
 public:
  // `grammar` must outlive this.
  explicit StateTable(Grammar& grammar) : grammar_(grammar) {}

  // Sorts the list.
  StateId Intern(std::vector<Config>* configs);
  StateId Intern(const Config& only);
  const std::vector<Config>& Configs(StateId state) const { return states_[state]; }
  // Appends to `out` what `configs` become after `byte`; `text` ends with that byte.
  void Step(const std::vector<Config>& configs, uint8_t byte, std::string_view text, std::vector<Config>* out);
  // Appends what `configs` become after a token of a token set; `text` ends with the token.
  void StepToken(const std::vector<Config>& configs, uint32_t token, std::string_view text, std::vector<Config>* out);
  // The state after one byte, or kDeadState. `text` need not end with the byte; `on_text`: the answer depends on it.
  StateId Follow(StateId state, uint8_t byte, std::string& text, bool* on_text);
  // The ending of `node` under `stack`; `text` ends with the byte that led there. One that rests on an assumption notes it each time.
  Ending EndingAt(NodeId node, StackId stack, std::string_view text);

 private:
  struct KnownEnding : Ending {
    Grammar::Assumptions assumptions;    // that it rests on
    std::vector<const KeyNames*> names;  // assumed to differ from the keys
  };

  void Merge(const Config& config, size_t from, std::vector<Config>* out);
  void Arrive(NodeId node, StackId stack, size_t from, std::vector<Config>* out);
  void Leave(std::string_view text, size_t from, std::vector<Config>* out);

  Grammar& grammar_;
  std::vector<std::vector<Config>> states_;
  HashIndex state_index_;    // by the hash of the parses
  HashIndex single_index_;   // by the one parse
  std::vector<KnownEnding> endings_;
  HashIndex ending_index_[2];  // by whether keys and items are assumed to be new, node and stack
  std::vector<Config> after_;  // one state, while it is made
  std::vector<Exit> exits_;    // of one step
};

}  // namespace onpolicy::grammar
