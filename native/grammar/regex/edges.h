// A node -> all its derivatives at once, one for each class of bytes that lead to the same node. Cached by node.
#pragma once
#include <memory>
#include <vector>

#include "grammar/regex/expressions.h"

namespace onpolicy::grammar {

struct Edge {
  ByteSet bytes;
  NodeId target;
};

class EdgeTable {
 public:
  explicit EdgeTable(Expressions& pool) : pool_(pool) {}
  // Returns edges with disjoint labels; no edge leads to kNothing by its form. The reference stays valid.
  const std::vector<Edge>& Of(NodeId id);
  bool Has(NodeId id) { return edges_.Reach(id) != nullptr; }
  // Copies the edges of another table, which must not change afterwards.
  void CopyFrom(const EdgeTable& other) { edges_ = other.edges_; }

 private:
  std::vector<Edge> Make(NodeId id);
  std::vector<Edge> OfConcat(NodeId id);
  std::vector<Edge> OfNot(NodeId inner);
  std::vector<Edge> OfLeaf(const Node& leaf);
  std::vector<Edge> Combine(const std::vector<NodeId>& parts, bool is_and);

  Expressions& pool_;
  PagedList<const std::vector<Edge>*> edges_;  // by node, null until made
  std::vector<std::unique_ptr<const std::vector<Edge>>> made_;
};

}  // namespace onpolicy::grammar
