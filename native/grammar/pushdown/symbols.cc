// Interning of sequences, expansion of rules.
#include "grammar/pushdown/symbols.h"

#include <algorithm>

namespace onpolicy::grammar {

bool TokenSet::Has(uint32_t token) const {
  return std::binary_search(tokens.begin(), tokens.end(), token) != inverted;
}

Symbol SymbolTable::SharedTerminal(NodeId node) {
  const Symbol terminal = Terminal(node);
  if (!IsShared(terminal)) shared_.push_back(terminal);
  return terminal;
}

Symbol SymbolTable::Rule(Generator generator) {
  rules_.emplace_back();
  rules_.back().generator = std::move(generator);
  return MakeSymbol(SymbolKind::kRule, static_cast<uint32_t>(rules_.size() - 1));
}

Symbol SymbolTable::UpTo(Generator generator) {
  const Symbol symbol = Rule(std::move(generator));
  rules_[IndexOf(symbol)].is_up_to = true;
  return symbol;
}

Symbol SymbolTable::Deferred(Resolver resolver) {
  resolvers_.push_back({std::move(resolver), {}});
  return MakeSymbol(SymbolKind::kDeferred, static_cast<uint32_t>(resolvers_.size() - 1));
}

Symbol SymbolTable::ByTag(TagResolver resolver) {
  resolvers_.push_back({{}, std::move(resolver)});
  return MakeSymbol(SymbolKind::kDeferred, static_cast<uint32_t>(resolvers_.size() - 1));
}

Symbol SymbolTable::TokensLeft(uint32_t left) {
  if (const auto known = tokens_left_.find(left); known != tokens_left_.end()) return known->second;
  const Symbol symbol = ByTag([](Grammar& grammar, uint32_t) { return grammar.Terminal(kEpsilon); });
  resolvers_.back().tokens_left = left;
  return tokens_left_[left] = symbol;
}

std::optional<uint32_t> SymbolTable::TokensLeftOf(SequenceId id) const {
  return BeginsDeferred(id) ? resolvers_[IndexOf(sequences_[id].head)].tokens_left : std::nullopt;
}

Symbol SymbolTable::Tokens(TokenSet set) {
  token_sets_.push_back(std::move(set));
  return MakeSymbol(SymbolKind::kTokenSet, static_cast<uint32_t>(token_sets_.size() - 1));
}

SequenceId SymbolTable::Prepend(Symbol head, SequenceId rest) {
  const uint64_t key = PairKey(head, rest);
  if (const SequenceId known = sequence_index_.Find(key); known != HashIndex::kNone) return known;
  const SequenceId made = static_cast<SequenceId>(sequences_.size());
  sequences_.push_back({head, rest});
  sequence_index_.Add(key, made);
  return made;
}

bool SymbolTable::IsUsable(const std::vector<Symbol>& symbols) const {
  return std::find(symbols.begin(), symbols.end(), MakeSymbol(SymbolKind::kTerminal, kNothing)) == symbols.end();
}

SequenceId SymbolTable::Sequence(const std::vector<Symbol>& symbols) {
  SequenceId result = 0;
  for (size_t i = symbols.size(); i-- > 0;) {
    Symbol head = symbols[i];
    if (KindOf(head) == SymbolKind::kTerminal) {
      NodeId node = IndexOf(head);
      while (i > 0 && KindOf(symbols[i - 1]) == SymbolKind::kTerminal) node = regex_.Concat(IndexOf(symbols[--i]), node);
      if (node == kEpsilon) continue;
      head = Terminal(node);
    }
    result = Prepend(head, result);
  }
  return result;
}

const std::vector<SequenceId>& SymbolTable::Productions(Symbol symbol) {
  const uint32_t rule = IndexOf(symbol);
  if (!rules_[rule].expanded) {
    // The generator may add rules, which moves the table: work on copies.
    Generator generator = std::move(rules_[rule].generator);
    std::vector<SequenceId> made = generator(grammar_);
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    rules_[rule].productions = std::move(made);
    rules_[rule].expanded = true;
    rules_[rule].generator = nullptr;
  }
  return rules_[rule].productions;
}

SymbolTable::Nullable SymbolTable::NullableOf(Symbol symbol) const {
  if (KindOf(symbol) == SymbolKind::kRule) return rules_[IndexOf(symbol)].nullable;
  return KindOf(symbol) == SymbolKind::kTerminal && regex_.IsNullable(IndexOf(symbol)) ? Nullable::kYes : Nullable::kNo;
}

bool SymbolTable::IsKnownNullable(SequenceId sequence) const {
  while (sequence != 0 && NullableOf(sequences_[sequence].head) == Nullable::kYes) sequence = sequences_[sequence].rest;
  return sequence == 0;
}

bool SymbolTable::IsKnownNotNullable(SequenceId sequence) const {
  while (sequence != 0 && NullableOf(sequences_[sequence].head) != Nullable::kNo) sequence = sequences_[sequence].rest;
  return sequence != 0;
}

}  // namespace onpolicy::grammar
