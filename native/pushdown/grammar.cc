// Interning of sequences and stacks; memo of closures.
#include "pushdown/grammar.h"

#include <algorithm>

#include "pushdown/closure.h"

namespace onpolicy::grammar {

bool TokenSet::Has(uint32_t token) const {
  return std::binary_search(tokens.begin(), tokens.end(), token) != inverted;
}

Grammar::Grammar() : closure_(std::make_unique<Closure>(*this)) {
  sequences_.push_back({0, 0});
  AddStack({});  // the bottom
}

Grammar::~Grammar() = default;

Symbol Grammar::Rule(Generator generator) {
  rules_.emplace_back();
  rules_.back().generator = std::move(generator);
  return MakeSymbol(SymbolKind::kRule, static_cast<uint32_t>(rules_.size() - 1));
}

Symbol Grammar::UpTo(Generator generator) {
  const Symbol symbol = Rule(std::move(generator));
  rules_[IndexOf(symbol)].is_up_to = true;
  return symbol;
}

Symbol Grammar::Deferred(Resolver resolver) {
  resolvers_.push_back(std::move(resolver));
  return MakeSymbol(SymbolKind::kDeferred, static_cast<uint32_t>(resolvers_.size() - 1));
}

Symbol Grammar::Tokens(TokenSet set) {
  token_sets_.push_back(std::move(set));
  return MakeSymbol(SymbolKind::kTokenSet, static_cast<uint32_t>(token_sets_.size() - 1));
}

SequenceId Grammar::Prepend(Symbol head, SequenceId rest) {
  const uint64_t key = (static_cast<uint64_t>(head) << 32) | rest;
  if (const SequenceId known = sequence_index_.Find(key); known != HashIndex::kNone) return known;
  const SequenceId made = static_cast<SequenceId>(sequences_.size());
  sequences_.push_back({head, rest});
  sequence_index_.Add(key, made);
  memory_bytes_ += 48;
  return made;
}

bool Grammar::IsUsable(const std::vector<Symbol>& symbols) const {
  return std::find(symbols.begin(), symbols.end(), MakeSymbol(SymbolKind::kTerminal, kNothing)) == symbols.end();
}

SequenceId Grammar::Sequence(const std::vector<Symbol>& symbols) {
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

const std::vector<SequenceId>& Grammar::Productions(uint32_t rule) {
  if (!rules_[rule].expanded) {
    // The generator may add rules, which moves the table: work on copies.
    Generator generator = std::move(rules_[rule].generator);
    std::vector<SequenceId> made = generator(*this);
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    memory_bytes_ += 64 + made.size() * 4;
    rules_[rule].productions = std::move(made);
    rules_[rule].expanded = true;
    rules_[rule].generator = nullptr;
  }
  return rules_[rule].productions;
}

bool Grammar::IsKnownNullable(SequenceId sequence) const {
  for (; sequence != 0; sequence = sequences_[sequence].rest) {
    const Symbol head = sequences_[sequence].head;
    const bool is_nullable = KindOf(head) == SymbolKind::kRule       ? rules_[IndexOf(head)].nullable
                             : KindOf(head) == SymbolKind::kTerminal && regex_.IsNullable(IndexOf(head));
    if (!is_nullable) return false;
  }
  return true;
}

bool Grammar::IsKnownFilled(SequenceId sequence) const {
  for (; sequence != 0; sequence = sequences_[sequence].rest) {
    const Symbol head = sequences_[sequence].head;
    const bool is_filled = KindOf(head) == SymbolKind::kRule       ? rules_[IndexOf(head)].filled
                           : KindOf(head) == SymbolKind::kTerminal ? !regex_.IsNullable(IndexOf(head))
                                                                   : true;
    if (is_filled) return true;
  }
  return false;
}

StackId Grammar::InternStack(std::vector<Branch> branches) {
  Tidy(&branches);
  auto [it, is_new] = stack_index_.try_emplace(std::move(branches), static_cast<StackId>(stacks_.size()));
  if (is_new) {
    AddStack(it->first);
    memory_bytes_ += 96 + 2 * it->first.size() * sizeof(Branch);
  }
  return it->second;
}

void Grammar::AddStack(std::vector<Branch> branches) {
  deferred_.push_back(std::any_of(branches.begin(), branches.end(), [&](const Branch& branch) {
    return branch.sequence != 0 && KindOf(sequences_[branch.sequence].head) == SymbolKind::kDeferred;
  }));
  stacks_.push_back(std::move(branches));
  below_.emplace_back();
}

std::vector<StackId> Grammar::InternKnot(std::vector<std::vector<Branch>> members) {
  for (auto& branches : members) {
    // What leads out of the knot adds nothing where another such branch holds it. Fellows have no stacks to compare yet.
    const auto outer = std::partition(branches.begin(), branches.end(), [](const Branch& branch) { return branch.parent & kKnotBit; });
    std::vector<Branch> kept(outer, branches.end());
    Tidy(&kept);
    branches.erase(outer, branches.end());
    branches.insert(branches.end(), kept.begin(), kept.end());
    std::sort(branches.begin(), branches.end());
    branches.erase(std::unique(branches.begin(), branches.end()), branches.end());
  }
  auto [it, is_new] = knot_index_.emplace(members, std::vector<StackId>{});
  if (is_new) {
    const StackId base = static_cast<StackId>(stacks_.size());
    for (size_t i = 0; i < members.size(); i++) it->second.push_back(base + static_cast<StackId>(i));
    for (auto branches : members) {
      for (Branch& branch : branches)
        if (branch.parent & kKnotBit) branch.parent = base + (branch.parent & ~kKnotBit);
      std::sort(branches.begin(), branches.end());
      memory_bytes_ += 96 + 2 * branches.size() * sizeof(Branch);
      AddStack(std::move(branches));
    }
  }
  return it->second;
}

StackId Grammar::Union(StackId a, StackId b) {
  if (a == b) return a;
  const uint64_t key = (static_cast<uint64_t>(std::min(a, b)) << 32) | std::max(a, b);
  auto it = unions_.find(key);
  if (it != unions_.end()) return it->second;
  if (Holds(a, b)) return unions_[key] = a;
  if (Holds(b, a)) return unions_[key] = b;
  std::vector<Branch> branches = stacks_[a];
  regex_.Charge(10 * (branches.size() + stacks_[b].size()));
  branches.insert(branches.end(), stacks_[b].begin(), stacks_[b].end());
  const StackId result = InternStack(std::move(branches));
  unions_.emplace(key, result);
  return result;
}

const std::vector<Config>& Grammar::RunClosure(const std::vector<Branch>& seeds) {
  regex_.Charge(40 + 10 * seeds.size());
  auto it = closures_.find(seeds);
  if (it == closures_.end()) {
    RefillQuestions();
    auto configs = std::make_unique<std::vector<Config>>(closure_->Run(seeds));
    memory_bytes_ += 160 + seeds.size() * sizeof(Branch) + configs->size() * sizeof(Config);
    it = closures_.emplace(seeds, std::move(configs)).first;
  }
  return *it->second;
}

std::vector<Config> Grammar::Start(Symbol start) { return RunClosure({{0, Sequence({start}), 0}}); }

const std::vector<Config>& Grammar::After(StackId stack, uint32_t tag, std::string_view text) {
  const uint64_t key = PairKey(stack, tag);
  if (auto it = after_.find(key); it != after_.end()) return *it->second;
  std::vector<Branch> seeds;
  const bool depends_on_text = AddReturns({stack, tag}, text, &seeds);
  Tidy(&seeds);
  const std::vector<Config>& configs = RunClosure(seeds);
  if (!depends_on_text) after_.emplace(key, &configs);
  return configs;
}

const std::vector<Config>& Grammar::After(const std::vector<Exit>& exits, std::string_view text) {
  if (exits.size() == 1) return After(exits[0].stack, exits[0].tag, text);
  std::vector<Branch> seeds;
  for (const Exit& exit : exits) AddReturns(exit, text, &seeds);
  Tidy(&seeds);
  return RunClosure(seeds);
}

bool Grammar::AddReturns(Exit exit, std::string_view text, std::vector<Branch>* seeds) {
  bool depends_on_text = false;
  // A resolver may add stacks, which moves the table.
  const std::vector<Branch> branches = stacks_[exit.stack];
  regex_.Charge(20 + 10 * branches.size());
  for (const Branch& branch : branches) {
    if (branch.tag != exit.tag) continue;
    Branch seed{0, branch.sequence, branch.parent};
    if (branch.sequence != 0 && KindOf(sequences_[branch.sequence].head) == SymbolKind::kDeferred) {
      depends_on_text = true;
      const uint64_t reads = text_reads_;
      Symbol symbol = 0;
      const Resolver& resolver = resolvers_[IndexOf(sequences_[branch.sequence].head)];
      const bool goes_on = resolver(*this, text, &symbol);
      if (reads != text_reads_) regex_.Charge(500 + text.size() / 4);
      if (!goes_on) continue;
      seed.sequence = Prepend(symbol, sequences_[branch.sequence].rest);
    }
    seeds->push_back(seed);
  }
  return depends_on_text;
}

}  // namespace onpolicy::grammar
