// The cache of closures.
#include "grammar/pushdown/grammar.h"

#include <algorithm>

#include "grammar/pushdown/closure.h"

namespace onpolicy::grammar {

// Work counted for a read of the text, in addition to the bytes read.
static constexpr uint64_t kReadWork = 500;

Grammar::Grammar() : SymbolTable(*this), stacks_(*this), closure_(std::make_unique<Closure>(*this, stacks_)) {}

Grammar::~Grammar() = default;

uint32_t Grammar::ClosureOf(const std::vector<Branch>& seeds) {
  regex().budget().Spend(40 + 10 * seeds.size());
  const uint64_t hash = HashOf(seeds);
  const uint32_t known = closure_index_.FindHash(hash, [&](uint32_t at) { return closures_[at].seeds == seeds; });
  if (known != HashIndex::kNone) return known;
  stacks_.subsumption().BeginClosure();
  std::vector<Config> configs = closure_->Run(seeds);
  const uint32_t made = static_cast<uint32_t>(closures_.size());
  closures_.push_back({seeds, std::move(configs)});
  closure_index_.AddHash(hash, made);
  return made;
}

std::vector<Config> Grammar::Start(Symbol start) { return closures_[ClosureOf({{0, Sequence({start}), 0}})].configs; }

const std::vector<Config>& Grammar::After(StackId stack, uint32_t tag, const MatchedText& text) {
  const uint64_t key = PairKey(stack, tag);
  if (const uint32_t known = after_.Find(key); known != HashIndex::kNone) return closures_[known].configs;
  seeds_.clear();
  const bool depends_on_text = AddReturns({stack, tag}, text, &seeds_);
  stacks_.subsumption().Reduce(&seeds_);
  const uint32_t closure = ClosureOf(seeds_);
  if (!depends_on_text) after_.Add(key, closure);
  return closures_[closure].configs;
}

const std::vector<Config>& Grammar::After(const std::vector<Exit>& exits, const MatchedText& text) {
  if (exits.size() == 1) return After(exits[0].stack, exits[0].tag, text);
  seeds_.clear();
  for (const Exit& exit : exits) AddReturns(exit, text, &seeds_);
  stacks_.subsumption().Reduce(&seeds_);
  return closures_[ClosureOf(seeds_)].configs;
}

void Grammar::NoteNames(const KeyNames* names) {
  if (std::find(assumed_names_.begin(), assumed_names_.end(), names) == assumed_names_.end()) assumed_names_.push_back(names);
}

bool Grammar::AddReturns(Exit exit, const MatchedText& text, std::vector<Branch>* seeds) {
  bool depends_on_text = false;
  // A resolver may add stacks. That moves the table of lists, but not the lists.
  const std::span<const Branch> branches = stacks_.branches(exit.stack);
  regex().budget().Spend(20 + 10 * branches.size());
  for (const Branch& branch : branches) {
    Branch seed{0, branch.sequence, branch.parent};
    const bool is_deferred = BeginsDeferred(branch.sequence);
    if (is_deferred && TagResolverOf(sequence(branch.sequence).head)) {
      const SequenceNode deferred = sequence(branch.sequence);
      seeds->push_back({0, Prepend(TagResolverOf(deferred.head)(*this, exit.tag), deferred.rest), branch.parent});
      continue;
    }
    if (branch.tag != exit.tag) continue;
    if (is_deferred) {
      depends_on_text = true;
      const uint64_t reads = text_reads_;
      Symbol symbol = 0;
      const SequenceNode deferred = sequence(branch.sequence);
      const bool continues = ResolverOf(deferred.head)(*this, text, &symbol);
      if (reads != text_reads_) regex().budget().Spend(kReadWork + text.TakeSteps());
      if (!continues) continue;
      seed.sequence = Prepend(symbol, deferred.rest);
    }
    seeds->push_back(seed);
  }
  return depends_on_text;
}

}  // namespace onpolicy::grammar
