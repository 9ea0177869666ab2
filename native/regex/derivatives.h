// A node and a byte -> the derivative, and all other bytes with the same one: made when it is asked for. Or all derivatives of a
// node at once, which are cached.
#pragma once
#include <memory>
#include <vector>

#include "regex/expressions.h"

namespace onpolicy::grammar {

// Bytes that lead to the same node.
struct Edge {
  ByteSet bytes;
  NodeId target;
};

class Derivatives {
 public:
  explicit Derivatives(Expressions& pool) : pool_(pool) {}
  // Removes bytes with another derivative from `same`.
  NodeId Of(NodeId id, uint8_t byte, ByteSet* same);
  // All of a node: disjoint sets of bytes, none of which leads to kNothing by its form. Stays where it is.
  const std::vector<Edge>& EdgesOf(NodeId id);
  // Begins with the edges of another pool, which stays as it is.
  void CopyFrom(const Derivatives& other) { edges_ = other.edges_; }

 private:
  NodeId Derive(NodeId id, uint8_t byte, ByteSet* same);
  NodeId DeriveAnew(NodeId id, uint8_t byte, ByteSet* same);
  NodeId DerivePart(NodeId id, uint8_t byte, ByteSet* same);
  NodeId FromEdges(NodeId id, uint8_t byte, ByteSet* same);
  NodeId Alternatives(std::vector<NodeId> options, size_t count);
  std::vector<Edge> MakeEdges(NodeId id);
  std::vector<Edge> EdgesOfLeaf(const Node& leaf);

  Expressions& pool_;
  struct Derived {
    uint64_t step = 0;
    NodeId target = kNothing;
  };
  PagedList<Derived> derived_;               // by node: its derivative in the latest step that met it
  PagedList<std::vector<Edge>> part_edges_;  // by node: those of parts of And and Not that were asked for
  PagedList<const std::vector<Edge>*> edges_;  // by node: all, null until made
  std::vector<std::unique_ptr<const std::vector<Edge>>> made_;
  uint64_t steps_ = 0, current_step_ = 0;  // a step: the derivative of one node by one byte
  unsigned exact_ = 0;                     // of And, Not and edges: their parts lose no alternatives
};

}  // namespace onpolicy::grammar
