// Rules, terminals and token sets -> symbols; lists of symbols -> numbers. Productions are made when a rule is first called.
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash-index.h"
#include "grammar/json/matched-text.h"
#include "grammar/regex/pool.h"

namespace onpolicy::grammar {

using Symbol = uint32_t;      // kind in the two upper bits, index below
using SequenceId = uint32_t;  // list of symbols; 0 is the empty one
enum class SymbolKind : uint32_t { kTerminal = 0, kRule = 1, kTokenSet = 2, kDeferred = 3 };
constexpr Symbol MakeSymbol(SymbolKind kind, uint32_t index) { return (static_cast<uint32_t>(kind) << 30) | index; }
constexpr SymbolKind KindOf(Symbol symbol) { return static_cast<SymbolKind>(symbol >> 30); }
constexpr uint32_t IndexOf(Symbol symbol) { return symbol & 0x3FFFFFFFu; }

// A set of token ids that a format names. `inverted`: every other ordinary or special token.
struct TokenSet {
  std::vector<uint32_t> tokens;  // sorted
  bool inverted = false;
  bool Has(uint32_t token) const;
};

class Grammar;
// Makes the productions of a rule.
using Generator = std::function<std::vector<SequenceId>(Grammar&)>;
// Chooses the symbol that replaces a deferred one, by the committed text. Returns false if there is none.
using Resolver = std::function<bool(Grammar&, const MatchedText& text, Symbol* symbol)>;

// Chooses the symbol by the tag at the end of a terminal that has its own tags.
using TagResolver = std::function<Symbol(Grammar&, uint32_t tag)>;

class SymbolTable {
 public:
  RegexPool& regex() { return regex_; }
  Symbol Terminal(NodeId node) { return MakeSymbol(SymbolKind::kTerminal, node); }
  // A terminal that occurs in many grammars. It is not merged with others, so that its masks are shared.
  Symbol SharedTerminal(NodeId node);
  // Returns true if a terminal is not merged: a shared one, or one with its own tags.
  bool IsShared(Symbol terminal) const {
    return regex_.node(IndexOf(terminal)).tagged || std::find(shared_.begin(), shared_.end(), terminal) != shared_.end();
  }
  Symbol Rule(Generator generator);
  // A rule of at most n parts. Its productions are the empty one, and a part followed by the rule of at most n - 1 parts.
  Symbol UpTo(Generator generator);
  Symbol Deferred(Resolver resolver);
  // A deferred symbol that only follows a terminal with its own tags.
  Symbol ByTag(TagResolver resolver);
  // A symbol of the empty text behind a text that is limited in tokens: says in how many more tokens that text may continue. It only follows
  // a shared terminal, because a merged one would have the limits of all its alternatives.
  Symbol TokensLeft(uint32_t left);
  // Returns the number if a list begins with such a symbol.
  std::optional<uint32_t> TokensLeftOf(SequenceId id) const;
  bool has_token_limits() const { return !tokens_left_.empty(); }
  Symbol Tokens(TokenSet set);
  const TokenSet& TokensOf(uint32_t index) const { return token_sets_[index]; }
  const Resolver& ResolverOf(Symbol deferred) const { return resolvers_[IndexOf(deferred)].by_text; }
  // Null if the text decides.
  const TagResolver& TagResolverOf(Symbol deferred) const { return resolvers_[IndexOf(deferred)].by_tag; }

  // Joins neighbouring terminals into one.
  SequenceId Sequence(const std::vector<Symbol>& symbols);
  SequenceId Prepend(Symbol head, SequenceId rest);
  struct SequenceNode {
    Symbol head;
    SequenceId rest;
  };
  const SequenceNode& sequence(SequenceId id) const { return sequences_[id]; }
  // Returns false if a terminal of the list matches no text.
  bool IsUsable(const std::vector<Symbol>& symbols) const;
  bool BeginsDeferred(SequenceId id) const { return id != 0 && KindOf(sequences_[id].head) == SymbolKind::kDeferred; }

  const std::vector<SequenceId>& Productions(Symbol rule);
  bool IsEmptyRule(Symbol rule) { return Productions(rule).empty(); }
  bool IsUpTo(Symbol rule) const { return rules_[IndexOf(rule)].is_up_to; }
  // Records a closure's result: whether a rule matches the empty text.
  void NoteNullable(Symbol rule, bool is_nullable) {
    Nullable& known = rules_[IndexOf(rule)].nullable;
    if (known != Nullable::kYes) known = is_nullable ? Nullable::kYes : Nullable::kNo;
  }
  // Returns true if the list is known to match the empty text (IsKnownNullable), or known not to (IsKnownNotNullable).
  bool IsKnownNullable(SequenceId id) const;
  bool IsKnownNotNullable(SequenceId id) const;

 protected:
  // `grammar` is passed to generators.
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
  struct Resolvers {
    Resolver by_text;
    TagResolver by_tag;
    std::optional<uint32_t> tokens_left = {};
  };
  std::deque<Resolvers> resolvers_;  // a deque, because a resolver may add others
  std::vector<TokenSet> token_sets_;
  std::unordered_map<uint32_t, Symbol> tokens_left_;  // by number
  std::vector<Symbol> shared_;
  std::vector<SequenceNode> sequences_;
  HashIndex sequence_index_;
};

}  // namespace onpolicy::grammar
