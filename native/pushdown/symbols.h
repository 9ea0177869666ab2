// Rules, terminals and token sets -> symbols; lists of symbols -> numbers. Productions are made when a rule is first called.
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <string_view>
#include <vector>

#include "base/hash-index.h"
#include "regex/pool.h"

namespace onpolicy::grammar {

using Symbol = uint32_t;      // kind in the two upper bits, index below
using SequenceId = uint32_t;  // list of symbols; 0 is the empty one
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

class Grammar;
// Makes the productions of a rule.
using Generator = std::function<std::vector<SequenceId>(Grammar&)>;
// Decides on the committed text which symbol replaces a deferred one; returns false for none.
using Resolver = std::function<bool(Grammar&, std::string_view text, Symbol* symbol)>;

class SymbolTable {
 public:
  RegexPool& regex() { return regex_; }
  Symbol Terminal(NodeId node) { return MakeSymbol(SymbolKind::kTerminal, node); }
  // A terminal that is the same in many grammars: it is not merged with others, so that its masks are shared.
  Symbol SharedTerminal(NodeId node);
  bool IsShared(Symbol terminal) const { return std::find(shared_.begin(), shared_.end(), terminal) != shared_.end(); }
  Symbol Rule(Generator generator);
  // A rule of up to some number of parts: its productions are nothing, and a part before the rule of one part less.
  Symbol UpTo(Generator generator);
  Symbol Deferred(Resolver resolver);
  Symbol Tokens(TokenSet set);
  const TokenSet& TokensOf(uint32_t index) const { return token_sets_[index]; }
  const Resolver& ResolverOf(Symbol deferred) const { return resolvers_[IndexOf(deferred)]; }

  // Neighbouring terminals become one.
  SequenceId Sequence(const std::vector<Symbol>& symbols);
  SequenceId Prepend(Symbol head, SequenceId rest);
  struct SequenceNode {
    Symbol head;
    SequenceId rest;
  };
  const SequenceNode& sequence(SequenceId id) const { return sequences_[id]; }
  // False when a terminal of the list matches nothing.
  bool IsUsable(const std::vector<Symbol>& symbols) const;
  bool BeginsDeferred(SequenceId id) const { return id != 0 && KindOf(sequences_[id].head) == SymbolKind::kDeferred; }

  const std::vector<SequenceId>& Productions(Symbol rule);
  bool IsEmptyRule(Symbol rule) { return Productions(rule).empty(); }
  bool IsUpTo(Symbol rule) const { return rules_[IndexOf(rule)].is_up_to; }
  // What closures have found out about a rule: whether it matches the empty text.
  void NoteNullable(Symbol rule, bool is_nullable) {
    Nullable& known = rules_[IndexOf(rule)].nullable;
    if (known != Nullable::kYes) known = is_nullable ? Nullable::kYes : Nullable::kNo;
  }
  // Whether the list is known to match the empty text, or known not to.
  bool IsKnownNullable(SequenceId id) const;
  bool IsKnownNotNullable(SequenceId id) const;

 protected:
  // `grammar` is given to generators.
  explicit SymbolTable(Grammar& grammar) : grammar_(grammar) { sequences_.push_back({0, 0}); }

 private:
  enum class Nullable : uint8_t { kUnknown, kNo, kYes };
  Nullable NullableOf(Symbol symbol) const;

  struct RuleInfo {
    Generator generator;
    bool is_up_to = false;
    bool expanded = false;
    Nullable nullable = Nullable::kUnknown;
    std::vector<SequenceId> productions;
  };

  Grammar& grammar_;
  RegexPool regex_;
  std::vector<RuleInfo> rules_;
  std::deque<Resolver> resolvers_;  // a resolver may add others: they stay where they are
  std::vector<TokenSet> token_sets_;
  std::vector<Symbol> shared_;
  std::vector<SequenceNode> sequences_;
  HashIndex sequence_index_;
};

}  // namespace onpolicy::grammar
