// Brzozowski derivatives, byte by byte.
#include "grammar/regex/derivatives.h"

#include "base/scoped-value.h"

namespace onpolicy::grammar {

NodeId Derivatives::Of(NodeId id, uint8_t byte, ByteSet* same) {
  // A leaf's automaton may call this pool again.
  const ScopedValue<uint64_t> step(current_step_, ++steps_);
  const bool is_late = pool_.budget().IsSpent(Phase::kStep);
  const auto phase = pool_.budget().Enter(Phase::kDerivative, is_late ? limits::kLateDerivativeWork : limits::kDerivativeWork);
  return Derive(id, byte, same);
}

// Nested counts make expressions that contain the same one many times, so that its derivative is made once per step.
NodeId Derivatives::Derive(NodeId id, uint8_t byte, ByteSet* same) {
  const uint64_t step = 2 * current_step_ + (exact_ > 0);
  if (const Derived& known = derived_.Reach(id); known.step == step) return known.target;
  const NodeId target = DeriveAnew(id, byte, same);
  derived_[id] = {step, target};
  return target;
}

NodeId Derivatives::FromEdges(NodeId id, uint8_t byte, ByteSet* same) {
  ByteSet covered;
  for (const Edge& edge : edges_.Of(id)) {
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
  const ScopedValue<unsigned> exact(exact_, exact_ + 1);
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
  const Node node = pool_.node(id);
  pool_.budget().Spend(5);
  // Classes of characters occur in many expressions, so that their edges are cached.
  const bool is_plain = node.kind == NodeKind::kAlternate && !node.repeats && !node.searches && !node.tagged;
  if (is_plain || node.kind == NodeKind::kLeaf || edges_.Has(id)) return FromEdges(id, byte, same);
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
  if (exact_ > 0 || node.searches || node.kind != NodeKind::kAlternate || node.max - node.min <= most) return all;
  pool_.budget().Cut(Phase::kDerivative);
  std::vector<NodeId> first = pool_.ChildrenOf(all);
  first.resize(most);
  return pool_.Alternate(std::move(first));
}

}  // namespace onpolicy::grammar
