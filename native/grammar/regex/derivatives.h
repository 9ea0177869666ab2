// A node and a byte -> the derivative, and all other bytes with the same one. Makes only the requested derivative.
#pragma once
#include <vector>

#include "grammar/regex/edges.h"

namespace onpolicy::grammar {

class Derivatives {
 public:
  Derivatives(Expressions& pool, EdgeTable& edges) : pool_(pool), edges_(edges) {}
  // Returns the derivative. Removes bytes with another derivative from `same`.
  NodeId Of(NodeId id, uint8_t byte, ByteSet* same);

 private:
  NodeId Derive(NodeId id, uint8_t byte, ByteSet* same);
  NodeId DeriveAnew(NodeId id, uint8_t byte, ByteSet* same);
  NodeId DerivePart(NodeId id, uint8_t byte, ByteSet* same);
  NodeId FromEdges(NodeId id, uint8_t byte, ByteSet* same);
  NodeId Alternatives(std::vector<NodeId> options, size_t count);

  Expressions& pool_;
  EdgeTable& edges_;
  struct Derived {
    uint64_t step = 0;
    NodeId target = kNothing;
  };
  PagedList<Derived> derived_;             // by node: its derivative in the latest step that computed it
  PagedList<std::vector<Edge>> part_edges_;  // by node: requested derivatives of parts of And and Not
  uint64_t steps_ = 0, current_step_ = 0;  // a step: one call of `Of`
  unsigned exact_ = 0;                     // depth of And and Not, whose parts must not drop alternatives
};

}  // namespace onpolicy::grammar
