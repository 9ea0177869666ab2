// Symbols -> a pushdown automaton: the terminals that may come first, and those that may follow a terminal. A configuration is two numbers,
// so that forks and rollbacks copy numbers, equal situations have equal numbers, and masks are cached.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scoped-value.h"
#include "grammar/pushdown/stack-graph.h"

namespace onpolicy::grammar {

// One live parse of the text so far: the automaton state of its terminal, and the stack below it.
// `node` has the top bit set for a token set waiting for its token; kEpsilon marks the completed grammar.
struct Config {
  NodeId node;
  StackId stack;
  bool operator==(const Config&) const = default;
};
constexpr uint32_t kTokenSetBit = 0x80000000u;

// The end of a parse's terminal: its stack, and the tag of its alternative.
struct Exit {
  StackId stack;
  uint32_t tag;
};

// Keys that an object names, sorted.
using KeyNames = std::vector<std::string>;

class Closure;

class Grammar : public SymbolTable {
 public:
  Grammar();
  ~Grammar();
  StackGraph& stacks() { return stacks_; }
  // Returns the parses that may begin with `start`.
  std::vector<Config> Start(Symbol start);
  // Returns the parses after the terminal of `stack` has ended with `tag`. `text` is everything matched so far.
  const std::vector<Config>& After(StackId stack, uint32_t tag, const MatchedText& text);
  // Does the same for several ends at once.
  const std::vector<Config>& After(const std::vector<Exit>& exits, const MatchedText& text);
  // Keeps an object that the rules refer to alive as long as the grammar.
  void Keep(std::shared_ptr<void> owner) { kept_.push_back(std::move(owner)); }

  // Count of answers that depended on the text and not only on the stack.
  uint64_t text_reads() const { return text_reads_; }
  void NoteTextRead() { text_reads_++; }
  // Until the returned value is destroyed, resolvers assume that a key or item is new. The caller rechecks the tokens that depend on it.
  ScopedValue<bool> AssumeNew() { return {assumes_new_, true}; }
  bool assumes_new() const { return assumes_new_; }
  // Counts of answers that depend on an assumption: that a key is new, that a finished item is new, or that a beginning item differs from
  // the one before it.
  struct Assumptions {
    uint64_t keys = 0, ends = 0, begins = 0;
    bool operator==(const Assumptions&) const = default;
    Assumptions Since(const Assumptions& before) const { return {keys - before.keys, ends - before.ends, begins - before.begins}; }
  };
  const Assumptions& assumptions() const { return assumptions_; }
  void NoteAssumptions(const Assumptions& more) {
    assumptions_.keys += more.keys;
    assumptions_.ends += more.ends;
    assumptions_.begins += more.begins;
  }
  // Key lists of objects for which a further key was assumed to differ from all keys in the list, each list once.
  const std::vector<const KeyNames*>& assumed_names() const { return assumed_names_; }
  void NoteNames(const KeyNames* names);
  // Replaces the lists and returns the previous ones.
  std::vector<const KeyNames*> SwapNames(std::vector<const KeyNames*> names) { return std::exchange(assumed_names_, std::move(names)); }

 private:
  // Adds the branches of an exit. Returns true if the text decided some of them.
  bool AddReturns(Exit exit, const MatchedText& text, std::vector<Branch>* seeds);
  // Returns the number of the closure of some return addresses.
  uint32_t ClosureOf(const std::vector<Branch>& seeds);

  StackGraph stacks_;
  struct KnownClosure {
    std::vector<Branch> seeds;
    std::vector<Config> configs;
  };
  std::deque<KnownClosure> closures_;  // a deque, because callers keep references
  HashIndex closure_index_;            // by the hash of the seeds
  HashIndex after_;                    // (stack, tag) -> closure, if it does not depend on the text
  std::vector<Branch> seeds_;          // seeds of one closure
  std::unique_ptr<Closure> closure_;
  std::vector<std::shared_ptr<void>> kept_;
  uint64_t text_reads_ = 0;
  bool assumes_new_ = false;
  Assumptions assumptions_;
  std::vector<const KeyNames*> assumed_names_;
};

}  // namespace onpolicy::grammar
