// The memo of closures.
#include "pushdown/grammar.h"

#include <algorithm>

#include "pushdown/closure.h"

namespace onpolicy::grammar {

Grammar::Grammar() : SymbolTable(*this), stacks_(*this), closure_(std::make_unique<Closure>(*this, stacks_)) {}

Grammar::~Grammar() = default;

const std::vector<Config>& Grammar::RunClosure(const std::vector<Branch>& seeds) {
  regex().budget().Spend(40 + 10 * seeds.size());
  auto it = closures_.find(seeds);
  if (it == closures_.end()) {
    stacks_.subsumption().BeginClosure();
    auto configs = std::make_unique<std::vector<Config>>(closure_->Run(seeds));
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
  stacks_.subsumption().Reduce(&seeds);
  const std::vector<Config>& configs = RunClosure(seeds);
  if (!depends_on_text) after_.emplace(key, &configs);
  return configs;
}

const std::vector<Config>& Grammar::After(const std::vector<Exit>& exits, std::string_view text) {
  if (exits.size() == 1) return After(exits[0].stack, exits[0].tag, text);
  std::vector<Branch> seeds;
  for (const Exit& exit : exits) AddReturns(exit, text, &seeds);
  stacks_.subsumption().Reduce(&seeds);
  return RunClosure(seeds);
}

void Grammar::NoteNames(const KeyNames* names) {
  if (std::find(assumed_names_.begin(), assumed_names_.end(), names) == assumed_names_.end()) assumed_names_.push_back(names);
}

bool Grammar::AddReturns(Exit exit, std::string_view text, std::vector<Branch>* seeds) {
  bool depends_on_text = false;
  // A resolver may add stacks, which moves the table.
  const std::vector<Branch> branches = stacks_.branches(exit.stack);
  regex().budget().Spend(20 + 10 * branches.size());
  for (const Branch& branch : branches) {
    if (branch.tag != exit.tag) continue;
    Branch seed{0, branch.sequence, branch.parent};
    if (BeginsDeferred(branch.sequence)) {
      depends_on_text = true;
      const uint64_t reads = text_reads_;
      Symbol symbol = 0;
      const SequenceNode deferred = sequence(branch.sequence);
      const bool continues = ResolverOf(deferred.head)(*this, text, &symbol);
      if (reads != text_reads_) regex().budget().Spend(500 + text.size() / 4);
      if (!continues) continue;
      seed.sequence = Prepend(symbol, deferred.rest);
    }
    seeds->push_back(seed);
  }
  return depends_on_text;
}

}  // namespace onpolicy::grammar
