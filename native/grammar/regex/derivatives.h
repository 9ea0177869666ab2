// A node and a byte -> the derivative, and all other bytes with the same one. Makes only the requested derivative, or all of a node at once.
#pragma once
#include <memory>
#include <vector>

#include "grammar/regex/expressions.h"

namespace onpolicy::grammar {

// A class of bytes with the same derivative.
struct Edge {
  ByteSet bytes;
  NodeId target;
};

class Derivatives {
 public:
  explicit Derivatives(Expressions& pool) : pool_(pool) {}
  // Returns the derivative. Removes bytes with another derivative from `same`. May drop alternatives of nested counts.
  NodeId Of(NodeId id, uint8_t byte, ByteSet* same);
  // Returns all derivatives that are not kNothing by their form, with disjoint classes. Drops no alternatives. Cached by node: the reference
  // stays valid.
  const std::vector<Edge>& AllOf(NodeId id);
  // Copies what `AllOf` has cached in another table, which must not change afterwards.
  void CopyFrom(const Derivatives& other) { edges_ = other.edges_; }

 private:
  enum class Mode : uint8_t {
    kByte,   // in `Of`: each derivative is made once per step
    kPart,   // the same in a part of And or Not, which must not drop alternatives
    kWhole,  // in `AllOf`: the derivatives of a node are made of all those of its parts
  };
  NodeId Derive(NodeId id, uint8_t byte, ByteSet* same);
  NodeId DeriveAnew(NodeId id, uint8_t byte, ByteSet* same);
  NodeId DeriveByKind(NodeId id, uint8_t byte, ByteSet* same);
  NodeId DerivePart(NodeId id, uint8_t byte, ByteSet* same);
  NodeId FromEdges(NodeId id, uint8_t byte, ByteSet* same);
  NodeId Alternatives(std::vector<NodeId> options, size_t count);
  std::vector<Edge> MakeEdges(NodeId id);
  std::vector<Edge> EdgesOfLeaf(const Node& leaf);
  bool HasEdges(NodeId id) { return edges_.Reach(id) != nullptr; }

  Expressions& pool_;
  struct Derived {
    uint64_t step = 0;
    NodeId target = kNothing;
  };
  PagedList<Derived> derived_;               // by node: its derivative in the latest step that computed it
  PagedList<std::vector<Edge>> part_edges_;  // by node: requested derivatives of parts of And and Not
  PagedList<const std::vector<Edge>*> edges_;  // by node: all derivatives, null until made
  std::vector<std::unique_ptr<const std::vector<Edge>>> made_;
  uint64_t steps_ = 0, current_step_ = 0;  // a step: one call of `Of`, or one derivative of a part
  Mode mode_ = Mode::kByte;
};

}  // namespace onpolicy::grammar
