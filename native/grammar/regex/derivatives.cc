// Brzozowski derivatives by one byte of each class.
#include "grammar/regex/derivatives.h"

#include <algorithm>

#include "base/scoped-value.h"

namespace onpolicy::grammar {

NodeId Derivatives::Of(NodeId id, uint8_t byte, ByteSet* same) {
  // A leaf's automaton may call this pool again.
  const ScopedValue<uint64_t> step(current_step_, ++steps_);
  const ScopedValue<Mode> mode(mode_, Mode::kByte);
  const bool is_late = pool_.budget().IsSpent(Phase::kStep);
  const auto phase = pool_.budget().Enter(Phase::kDerivative, is_late ? limits::kLateDerivativeWork : limits::kDerivativeWork);
  return Derive(id, byte, same);
}

// Nested counts make expressions that contain the same one many times, so that its derivative is made once per step.
NodeId Derivatives::Derive(NodeId id, uint8_t byte, ByteSet* same) {
  if (mode_ == Mode::kWhole) return FromEdges(id, byte, same);
  const uint64_t step = 2 * current_step_ + (mode_ == Mode::kPart);
  if (const Derived& known = derived_.Reach(id); known.step == step) return known.target;
  const NodeId target = DeriveAnew(id, byte, same);
  derived_[id] = {step, target};
  return target;
}

NodeId Derivatives::FromEdges(NodeId id, uint8_t byte, ByteSet* same) {
  ByteSet covered;
  const std::vector<Edge>& edges = AllOf(id);
  pool_.budget().Spend(1 + edges.size() / 4);
  for (const Edge& edge : edges) {
    if (edge.bytes.Has(byte)) {
      *same = *same & edge.bytes;
      return edge.target;
    }
    covered = covered | edge.bytes;
  }
  *same = *same & ~covered;
  return kNothing;
}

// Parts of intersections occur in many combinations, but have few states, so that each derivative is cached.
NodeId Derivatives::DerivePart(NodeId id, uint8_t byte, ByteSet* same) {
  if (mode_ == Mode::kWhole) return FromEdges(id, byte, same);
  const ScopedValue<Mode> mode(mode_, Mode::kPart);
  if (pool_.node(id).searches) return Derive(id, byte, same);
  pool_.budget().Spend(1);
  for (const Edge& edge : part_edges_.Reach(id))
    if (edge.bytes.Has(byte)) {
      *same = *same & edge.bytes;
      return edge.target;
    }
  const ScopedValue<uint64_t> step(current_step_, ++steps_);
  Edge made{ByteSet::All(), kNothing};
  made.target = Derive(id, byte, &made.bytes);
  part_edges_[id].push_back(made);
  *same = *same & made.bytes;
  return made.target;
}

NodeId Derivatives::DeriveAnew(NodeId id, uint8_t byte, ByteSet* same) {
  const Node& node = pool_.node(id);
  // Classes of characters occur in many expressions, so that their edges are cached.
  const bool is_plain = node.kind == NodeKind::kAlternate && !node.repeats && !node.searches && !node.tagged;
  if (is_plain || node.kind == NodeKind::kLeaf || HasEdges(id)) return FromEdges(id, byte, same);
  return DeriveByKind(id, byte, same);
}

NodeId Derivatives::DeriveByKind(NodeId id, uint8_t byte, ByteSet* same) {
  const Node node = pool_.node(id);
  pool_.budget().Spend(5);
  switch (node.kind) {
    case NodeKind::kBytes: {
      const ByteSet& set = pool_.set_of(node);
      *same = *same & (set.Has(byte) ? set : ~set);
      return set.Has(byte) ? kEpsilon : kNothing;
    }
    case NodeKind::kConcat: {
      if (!pool_.node(node.a).nullable) {
        const NodeId target = Derive(node.a, byte, same);
        return target == kNothing ? kNothing : pool_.Concat(target, node.b);
      }
      // A run of nullable parts has several beginnings. A loop, because such runs may be long.
      std::vector<NodeId> options;
      for (NodeId rest = id;;) {
        const NodeTable::Split split = pool_.SplitHead(rest);
        const NodeId target = Derive(split.head, byte, same);
        if (target != kNothing) options.push_back(pool_.Concat(target, split.tail));
        if (split.tail == kEpsilon || !pool_.node(split.head).nullable) break;
        rest = split.tail;
      }
      return Alternatives(std::move(options), 0);
    }
    case NodeKind::kAlternate: {
      std::vector<NodeId> options;
      for (uint32_t i = node.min; i < node.max; i++)
        if (const NodeId target = Derive(pool_.child(i), byte, same); target != kNothing) options.push_back(target);
      return Alternatives(std::move(options), node.max - node.min);
    }
    case NodeKind::kAnd: {
      std::vector<NodeId> parts;
      for (uint32_t i = node.min; i < node.max; i++) {
        parts.push_back(DerivePart(pool_.child(i), byte, same));
        if (parts.back() == kNothing) break;
      }
      return pool_.And(std::move(parts));
    }
    case NodeKind::kNot:
      return pool_.Not(DerivePart(node.a, byte, same));
    case NodeKind::kRepeat: {
      const NodeId target = Derive(node.a, byte, same);
      return target == kNothing ? kNothing : pool_.Concat(target, pool_.RestOf(node));
    }
    default:
      return kNothing;
  }
}

// Returns the union of derivatives of an expression with `count` alternatives. Nested counts may lead to thousands of alternatives: then
// the ones made last are dropped, which have the least left to count.
NodeId Derivatives::Alternatives(std::vector<NodeId> options, size_t count) {
  if (options.size() == 1) return options[0];
  const NodeId all = pool_.Alternate(std::move(options));
  const Node& node = pool_.node(all);
  const size_t most = std::max(count, limits::kAlternatives);
  if (mode_ != Mode::kByte || node.searches || node.kind != NodeKind::kAlternate || node.max - node.min <= most) return all;
  pool_.budget().Cut(Phase::kDerivative);
  std::vector<NodeId> first = pool_.ChildrenOf(all);
  first.resize(most);
  return pool_.Alternate(std::move(first));
}

const std::vector<Edge>& Derivatives::AllOf(NodeId id) {
  if (!HasEdges(id)) {
    made_.push_back(std::make_unique<const std::vector<Edge>>(MakeEdges(id)));
    edges_[id] = made_.back().get();
  }
  return *edges_[id];
}

static void AddEdge(std::vector<Edge>* edges, const ByteSet& bytes, NodeId target) {
  const auto known = std::find_if(edges->rbegin(), edges->rend(), [&](const Edge& edge) { return edge.target == target; });
  if (known == edges->rend()) {
    edges->push_back({bytes, target});
  } else {
    known->bytes = known->bytes | bytes;
  }
}

std::vector<Edge> Derivatives::MakeEdges(NodeId id) {
  const Node node = pool_.node(id);
  if (node.kind == NodeKind::kLeaf) return EdgesOfLeaf(node);
  const ScopedValue<Mode> mode(mode_, Mode::kWhole);
  std::vector<Edge> edges;
  for (ByteSet left = pool_.FirstOf(id); !left.IsEmpty();) {
    ByteSet same = left;
    const NodeId target = DeriveByKind(id, left.Lowest(), &same);
    left = left & ~same;
    if (target != kNothing) AddEdge(&edges, same, target);
  }
  return edges;
}

std::vector<Edge> Derivatives::EdgesOfLeaf(const Node& leaf) {
  std::vector<Edge> edges;
  Automaton* automaton = pool_.automaton_of(leaf);
  // Until the end of the loop, targets are the automaton's own states.
  automaton->First(leaf.b).ForEach([&](unsigned byte) {
    const uint32_t next = automaton->Next(leaf.b, static_cast<uint8_t>(byte));
    ByteSet bytes;
    bytes.Add(byte);
    if (next != Automaton::kDead) AddEdge(&edges, bytes, next);
  });
  for (Edge& edge : edges) edge.target = pool_.Leaf(automaton, edge.target);
  return edges;
}

}  // namespace onpolicy::grammar
