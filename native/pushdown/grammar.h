// Rules -> the pushdown part of the engine: symbols, hash-consed sequences and stacks, and the closure that says what
// may follow once a terminal has ended. Stacks are immutable sets of return addresses, so that a matcher's whole state
// is a few numbers: forks and rollbacks copy numbers, equal situations meet in one number, and masks are remembered.
// Left recursion needs no rewriting: the stacks of one closure may point at each other, and such a knot is interned as one.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/paged-index.h"
#include "base/scoped-value.h"
#include "regex/pool.h"

namespace onpolicy::grammar {

using Symbol = uint32_t;    // kind in the two upper bits, index below
using SequenceId = uint32_t;  // list of symbols; 0 is the empty one
using StackId = uint32_t;   // 0 is the bottom: returning to it completes the grammar
enum class SymbolKind : uint32_t { kTerminal = 0, kRule = 1, kTokenSet = 2, kDeferred = 3 };
constexpr Symbol MakeSymbol(SymbolKind kind, uint32_t index) { return (static_cast<uint32_t>(kind) << 30) | index; }
constexpr SymbolKind KindOf(Symbol symbol) { return static_cast<SymbolKind>(symbol >> 30); }
constexpr uint32_t IndexOf(Symbol symbol) { return symbol & 0x3FFFFFFFu; }

// A set of token ids that a format names; `inverted` means every other ordinary or special token.
struct TokenSet {
  std::vector<uint32_t> tokens;  // sorted
  bool inverted = false;
  bool Has(uint32_t token) const;
};

// One live reading of the text so far: a terminal's automaton state and what to do when it ends.
// `node` has the top bit set for a token set waiting for its token; kEpsilon marks the completed grammar.
struct Config {
  NodeId node;
  StackId stack;
  bool operator==(const Config&) const = default;
};
constexpr uint32_t kTokenSetBit = 0x80000000u;

// Where a reading leaves its terminal: the stack above it, and the tag of its end.
struct Exit {
  StackId stack;
  uint32_t tag;
};

class Closure;

class Grammar {
 public:
  // Makes the productions of a rule when it is first called.
  using Generator = std::function<std::vector<SequenceId>(Grammar&)>;
  // Decides on the committed text which symbol stands in for a deferred one; returns false for none.
  using Resolver = std::function<bool(Grammar&, std::string_view text, Symbol* symbol)>;

  Grammar();
  ~Grammar();
  RegexPool& regex() { return regex_; }

  Symbol Terminal(NodeId node) { return MakeSymbol(SymbolKind::kTerminal, node); }
  Symbol Rule(Generator generator);
  // A rule of up to some number of parts: its productions are nothing, and a part before the rule of one part less.
  Symbol UpTo(Generator generator);
  Symbol Deferred(Resolver resolver);
  Symbol Tokens(TokenSet set);
  const TokenSet& TokensOf(uint32_t index) const { return token_sets_[index]; }
  // Lists are joined: neighbouring terminals become one, a terminal that matches nothing makes the list unusable.
  SequenceId Sequence(const std::vector<Symbol>& symbols);
  // `symbols` is false when the list can never match.
  bool IsUsable(const std::vector<Symbol>& symbols) const;

  // Whether a rule has no productions at all.
  bool IsEmptyRule(Symbol rule) { return Productions(IndexOf(rule)).empty(); }
  // What may come first from `start`.
  std::vector<Config> Start(Symbol start);
  // What may come after the terminal of `stack` ended with `tag`. `text` is everything matched so far.
  const std::vector<Config>& After(StackId stack, uint32_t tag, std::string_view text);
  // The same after one of several ends.
  const std::vector<Config>& After(const std::vector<Exit>& exits, std::string_view text);
  StackId Union(StackId a, StackId b);
  // Whether nothing but the end of everything follows the terminal of `stack`.
  bool EndsAll(StackId stack) const { return stacks_[stack].size() == 1 && stacks_[stack][0] == Branch{0, 0, 0}; }

  // Keeps what rules refer to alive as long as the grammar.
  void Keep(std::shared_ptr<void> owner) { kept_.push_back(std::move(owner)); }
  // Grows whenever an answer depended on the text and not only on the stack.
  uint64_t text_reads() const { return text_reads_; }
  void NoteTextRead() { text_reads_++; }
  // While this lasts, resolvers assume that a key or item is new. The caller checks the tokens that rest on it again.
  ScopedValue<bool> AssumeNew() { return {assumes_new_, true}; }
  bool assumes_new() const { return assumes_new_; }
  // Grow with every answer that rests on an assumption: that a key is new, that a finished item is new, that an item
  // which begins is not the one before it.
  struct Assumptions {
    uint64_t keys = 0, ends = 0, begins = 0;
    bool operator==(const Assumptions&) const = default;
  };
  const Assumptions& assumptions() const { return assumptions_; }
  void NoteAssumptions(const Assumptions& more) {
    assumptions_.keys += more.keys;
    assumptions_.ends += more.ends;
    assumptions_.begins += more.begins;
  }
  size_t memory_bytes() const { return memory_bytes_; }
  // Set when a step ran over its budget; the matcher then refuses the token.
  bool out_of_fuel() const { return out_of_fuel_; }

 private:
  friend class Closure;
  struct Branch {
    uint32_t tag;
    SequenceId sequence;
    StackId parent;
    auto operator<=>(const Branch&) const = default;
  };
  struct SequenceNode {
    Symbol head;
    SequenceId rest;
  };
  struct RuleInfo {
    Generator generator;
    bool is_up_to = false;
    bool expanded = false;
    bool nullable = false;  // a closure has found that it matches the empty text,
    bool filled = false;    // or that it does not
    std::vector<SequenceId> productions;
  };

  const std::vector<SequenceId>& Productions(uint32_t rule);
  SequenceId Prepend(Symbol head, SequenceId rest);
  StackId InternStack(std::vector<Branch> branches);
  bool IsKnownNullable(SequenceId sequence) const;
  bool IsKnownFilled(SequenceId sequence) const;
  // Stacks that are met from this one when parts that may be empty are, as far as it is known by now.
  const std::vector<StackId>& Below(StackId stack);
  // Whether all that may follow `part` may follow `whole`, as far as their forms tell: false is no proof.
  bool Holds(StackId whole, StackId part);
  // What is known of a pair, as stack-order.cc numbers it.
  uint32_t KnownAnswer(uint64_t key);
  struct Answer {
    bool holds;
    uint32_t base;  // the first of the pairs being asked about that it rests on, or kUnlimited
  };
  static constexpr Answer kYes{true, kUnlimited}, kNo{false, kUnlimited};
  // The same as Holds, as part of a question: takes from its steps.
  Answer Ask(StackId whole, StackId part, uint32_t* steps);
  // Whether one of the branches from `first` to `last`, which go on alike, goes on with all that `part` does.
  Answer AskAny(const Branch* first, const Branch* last, StackId part, uint32_t* steps);
  // A closure begins: its questions whether stacks hold others share a bounded number of steps.
  void RefillQuestions();
  // Sorts branches, and drops those that add nothing to others.
  void Tidy(std::vector<Branch>* branches);
  // Whether a branch of a stack goes on with a symbol that the text decides.
  bool HasDeferred(StackId stack) const { return deferred_[stack]; }
  void AddStack(std::vector<Branch> branches);
  // Interns the stacks of one knot: each refers to its fellows by (kKnotBit | position).
  std::vector<StackId> InternKnot(std::vector<std::vector<Branch>> members);
  // Adds the branches of an exit; whether the text decided some of them.
  bool AddReturns(Exit exit, std::string_view text, std::vector<Branch>* seeds);
  const std::vector<Config>& RunClosure(const std::vector<Branch>& seeds);

  RegexPool regex_;
  std::vector<RuleInfo> rules_;
  std::deque<Resolver> resolvers_;  // they stay where they are
  std::vector<TokenSet> token_sets_;
  std::vector<SequenceNode> sequences_;
  HashIndex sequence_index_;
  std::vector<std::vector<Branch>> stacks_;
  std::vector<bool> deferred_;  // by stack
  std::vector<std::unique_ptr<std::vector<StackId>>> below_;  // by stack, null until asked for
  std::vector<uint64_t> covered_;  // by stack: the last group of branches one of whose stacks it is below
  uint64_t cover_ = 0;             // the group
  PagedIndex holds_, earlier_holds_;  // (whole, part) -> whether it does
  uint32_t holds_steps_ = 0;  // that questions may still take
  // Pairs of the question that is being asked that hold if those they rest on do.
  struct AskedPair {
    uint64_t key;
    uint32_t base;
  };
  std::vector<AskedPair> asked_;
  std::map<std::vector<Branch>, StackId> stack_index_;
  std::map<std::vector<std::vector<Branch>>, std::vector<StackId>> knot_index_;
  std::unordered_map<uint64_t, const std::vector<Config>*> after_;  // (stack, tag) -> configs, where text plays no part
  std::map<std::vector<Branch>, std::unique_ptr<std::vector<Config>>> closures_;
  std::unique_ptr<Closure> closure_;
  std::unordered_map<uint64_t, StackId> unions_;
  std::vector<std::shared_ptr<void>> kept_;
  uint64_t text_reads_ = 0;
  bool assumes_new_ = false;
  Assumptions assumptions_;
  size_t memory_bytes_ = 0;
  bool out_of_fuel_ = false;
};

}  // namespace onpolicy::grammar
