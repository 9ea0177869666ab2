// Interns nodes, and computes their forms from the forms of their parts.
#include "grammar/regex/nodes.h"

#include <algorithm>
#include <atomic>

namespace onpolicy::grammar {

static uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9ull;
}

NodeId NodeTable::Intern(const Node& node, const std::vector<NodeId>* children) {
  uint64_t hash = Mix(static_cast<uint64_t>(node.kind), (static_cast<uint64_t>(node.a) << 32) | node.b);
  if (node.kind == NodeKind::kBytes) {
    for (uint64_t word : sets_.back().words) hash = Mix(hash, word);
  } else if (children) {
    for (NodeId child : *children) hash = Mix(hash, child);
  } else {
    hash = Mix(hash, (static_cast<uint64_t>(node.min) << 32) | node.max);
  }
  hash = MixBits(hash);
  const NodeId known = index_.FindHash(hash, [&](NodeId id) {
    const Node& other = nodes_[id];
    if (other.kind != node.kind || other.a != node.a || other.b != node.b) return false;
    if (node.kind == NodeKind::kBytes) return sets_[other.min] == sets_.back();
    if (!children) return other.min == node.min && other.max == node.max;
    return other.max - other.min == children->size() &&
           std::equal(children->begin(), children->end(), children_.begin() + other.min);
  });
  budget_.Spend(6 + (children ? children->size() / 2 : 0));
  if (known != HashIndex::kNone) {
    if (node.kind == NodeKind::kBytes) sets_.pop_back();
    return known;
  }
  Node stored = node;
  if (node.kind == NodeKind::kBytes) stored.min = static_cast<uint32_t>(sets_.size() - 1);
  if (children) {
    stored.min = static_cast<uint32_t>(children_.size());
    children_.insert(children_.end(), children->begin(), children->end());
    stored.max = static_cast<uint32_t>(children_.size());
  }
  budget_.Spend(30 + (children ? 3 * children->size() : 0));
  const NodeId id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(stored);
  forms_.push_back(MakeForm(id));
  row_of_.push_back(nullptr);
  index_.AddHash(hash, id);
  return id;
}

void NodeTable::CopyFrom(const NodeTable& other) {
  row_of_ = other.row_of_;
  nodes_ = other.nodes_;
  forms_ = other.forms_;
  children_ = other.children_;
  sets_ = other.sets_;
  index_ = other.index_;
}

NodeId NodeTable::InternSet(const ByteSet& set) {
  sets_.push_back(set);
  return Intern({NodeKind::kBytes});
}

std::vector<NodeId> NodeTable::ChildrenOf(NodeId node) const {
  return {children_.begin() + nodes_[node].min, children_.begin() + nodes_[node].max};
}

NodeTable::Split NodeTable::SplitHead(NodeId node) const {
  if (node == kEpsilon) return {kEpsilon, kEpsilon};
  if (nodes_[node].kind == NodeKind::kConcat) return {nodes_[node].a, nodes_[node].b};
  return {node, kEpsilon};
}

// Nodes share parts, so each part is visited once.
const ByteSet& NodeTable::FirstOf(NodeId id) {
  // Handles a run of nullable parts from its end in a loop, because it may be long.
  std::vector<NodeId> run;
  for (NodeId rest = id; !firsts_.Reach(rest); rest = nodes_[rest].b) {
    run.push_back(rest);
    if (nodes_[rest].kind != NodeKind::kConcat || !nodes_[nodes_[rest].a].nullable) break;
  }
  while (!run.empty()) {
    budget_.Spend(1);
    auto first = std::make_unique<const ByteSet>(MakeFirst(run.back()));
    firsts_.Reach(run.back()) = std::move(first);
    run.pop_back();
  }
  return *firsts_[id];
}

ByteSet NodeTable::MakeFirst(NodeId id) {
  const Node& node = nodes_[id];
  switch (node.kind) {
    case NodeKind::kNothing:
    case NodeKind::kEpsilon:
    case NodeKind::kTag:
      return {};
    case NodeKind::kBytes:
      return set_of(node);
    case NodeKind::kRepeat:
      return FirstOf(node.a);
    case NodeKind::kAlternate: {
      ByteSet first;
      for (uint32_t i = node.min; i < node.max; i++) first = first | FirstOf(children_[i]);
      return first;
    }
    case NodeKind::kLeaf:
      return leaves_[node.a]->First(node.b);
    case NodeKind::kConcat:
      return nodes_[node.a].nullable ? FirstOf(node.a) | FirstOf(node.b) : FirstOf(node.a);
    default:
      return ByteSet::All();
  }
}

uint32_t NodeTable::LeafOf(Automaton* automaton) {
  const auto [it, is_new] = leaf_index_.emplace(automaton, static_cast<uint32_t>(leaves_.size()));
  if (is_new) {
    leaves_.push_back(automaton);
    leaf_forms_.push_back(FormOfAutomaton(*automaton));
  }
  return it->second;
}

Form NodeTable::MakeForm(NodeId id) const {
  const Node& node = nodes_[id];
  Form form = Form::Seed().With(static_cast<uint64_t>(node.kind));
  // The first nodes are the same in every pool, and refer to each other.
  if (id <= kAnyText) return form;
  switch (node.kind) {
    case NodeKind::kBytes:
      for (uint64_t word : sets_[node.min].words) form = form.With(word);
      return form;
    case NodeKind::kConcat:
      return form.With(forms_[node.a]).With(forms_[node.b]);
    case NodeKind::kAlternate:
    case NodeKind::kAnd: {
      // Children are in the order of their numbers, which differ between pools.
      Form all;
      for (uint32_t i = node.min; i < node.max; i++) all.Add(Form::Seed().With(forms_[children_[i]]));
      return form.With(node.max - node.min).With(all);
    }
    case NodeKind::kNot:
      return form.With(forms_[node.a]);
    case NodeKind::kRepeat:
      return form.With(forms_[node.a]).With(PairKey(node.min, node.max));
    case NodeKind::kLeaf:
      return form.With(leaf_forms_[node.a]).With(node.b);
    default:
      return form.With(node.a);
  }
}

Form NodeTable::FormOfAutomaton(const Automaton& automaton) {
  static std::atomic<uint64_t> others{0};
  const std::string content = automaton.Content();
  return content.empty() ? Form::Seed().With(++others) : Form::Seed().With(content);
}

}  // namespace onpolicy::grammar
