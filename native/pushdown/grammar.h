// Symbols -> a pushdown automaton: what may come first, and what may follow once a terminal has ended. A configuration is two
// numbers, so that forks and rollbacks copy numbers, equal situations have one number, and masks are cached.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scoped-value.h"
#include "pushdown/stack-graph.h"

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
  // What may come first from `start`.
  std::vector<Config> Start(Symbol start);
  // What may come after the terminal of `stack` ended with `tag`. `text` is everything matched so far.
  const std::vector<Config>& After(StackId stack, uint32_t tag, std::string_view text);
  // The same after one of several ends.
  const std::vector<Config>& After(const std::vector<Exit>& exits, std::string_view text);
  // The grammar owns what its rules refer to.
  void Keep(std::shared_ptr<void> owner) { kept_.push_back(std::move(owner)); }

  // Grows whenever an answer depended on the text and not only on the stack.
  uint64_t text_reads() const { return text_reads_; }
  void NoteTextRead() { text_reads_++; }
  // While this lasts, resolvers assume that a key or item is new. The caller checks the tokens that rest on it again.
  ScopedValue<bool> AssumeNew() { return {assumes_new_, true}; }
  bool assumes_new() const { return assumes_new_; }
  // Counts of answers that rest on an assumption: that a key is new, that a finished item is new, that an item which begins is
  // not the one before it.
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
  // The keys that objects name whose further keys were assumed to be none of them, each list once.
  const std::vector<const KeyNames*>& assumed_names() const { return assumed_names_; }
  void NoteNames(const KeyNames* names);
  // Replaces the lists; returns the ones before.
  std::vector<const KeyNames*> SwapNames(std::vector<const KeyNames*> names) { return std::exchange(assumed_names_, std::move(names)); }

 private:
  // Adds the branches of an exit; returns whether the text decided some of them.
  bool AddReturns(Exit exit, std::string_view text, std::vector<Branch>* seeds);
  // The number of the closure of some return addresses.
  uint32_t ClosureOf(const std::vector<Branch>& seeds);

  StackGraph stacks_;
  struct KnownClosure {
    std::vector<Branch> seeds;
    std::vector<Config> configs;
  };
  std::deque<KnownClosure> closures_;  // callers refer to them: they stay where they are
  HashIndex closure_index_;            // by the hash of the seeds
  HashIndex after_;                    // (stack, tag) -> closure, where text plays no part
  std::vector<Branch> seeds_;          // of one closure
  std::unique_ptr<Closure> closure_;
  std::vector<std::shared_ptr<void>> kept_;
  uint64_t text_reads_ = 0;
  bool assumes_new_ = false;
  Assumptions assumptions_;
  std::vector<const KeyNames*> assumed_names_;
};

}  // namespace onpolicy::grammar
