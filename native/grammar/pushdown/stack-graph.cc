// Interning of stacks and of strongly connected components.
#include "grammar/pushdown/stack-graph.h"

#include <algorithm>

namespace onpolicy::grammar {

void StackGraph::Add(std::vector<Branch> branches) {
  const auto is_deferred = [&](const Branch& branch) { return symbols_.BeginsDeferred(branch.sequence); };
  deferred_.push_back(std::any_of(branches.begin(), branches.end(), is_deferred));
  stacks_.push_back(std::move(branches));
}

StackId StackGraph::Intern(std::vector<Branch>* branches) {
  subsumption_.Reduce(branches);
  const uint64_t hash = HashOf(*branches);
  const StackId known = index_.FindHash(hash, [&](StackId id) { return stacks_[id] == *branches; });
  if (known != HashIndex::kNone) return known;
  const StackId id = static_cast<StackId>(stacks_.size());
  Add(*branches);
  index_.AddHash(hash, id);
  return id;
}

std::vector<StackId> StackGraph::InternComponent(std::vector<std::vector<Branch>> members) {
  for (auto& branches : members) {
    // Members have no stacks to compare yet, so that only branches leaving the component are reduced.
    const auto outer = std::partition(branches.begin(), branches.end(), [](const Branch& branch) { return branch.parent & kMemberBit; });
    std::vector<Branch> kept(outer, branches.end());
    subsumption_.Reduce(&kept);
    branches.erase(outer, branches.end());
    branches.insert(branches.end(), kept.begin(), kept.end());
    std::sort(branches.begin(), branches.end());
    branches.erase(std::unique(branches.begin(), branches.end()), branches.end());
  }
  auto [it, is_new] = component_index_.emplace(members, std::vector<StackId>{});
  if (is_new) {
    const StackId base = static_cast<StackId>(stacks_.size());
    for (size_t i = 0; i < members.size(); i++) it->second.push_back(base + static_cast<StackId>(i));
    for (auto branches : members) {
      for (Branch& branch : branches)
        if (branch.parent & kMemberBit) branch.parent = base + (branch.parent & ~kMemberBit);
      std::sort(branches.begin(), branches.end());
      Add(std::move(branches));
    }
  }
  return it->second;
}

StackId StackGraph::Union(StackId a, StackId b) {
  if (a == b) return a;
  const uint64_t key = PairKey(std::min(a, b), std::max(a, b));
  auto it = unions_.find(key);
  if (it != unions_.end()) return it->second;
  if (subsumption_.Subsumes(a, b)) return unions_[key] = a;
  if (subsumption_.Subsumes(b, a)) return unions_[key] = b;
  std::vector<Branch> branches = stacks_[a];
  symbols_.regex().budget().Spend(10 * (branches.size() + stacks_[b].size()));
  branches.insert(branches.end(), stacks_[b].begin(), stacks_[b].end());
  const StackId result = Intern(&branches);
  unions_.emplace(key, result);
  return result;
}

}  // namespace onpolicy::grammar
