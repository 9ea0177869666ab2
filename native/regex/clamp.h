// An expression -> one that says the same of every text up to some length, with large counts replaced: states of a counted
// repetition that are far from its end become one.
#pragma once
#include "regex/expressions.h"

namespace onpolicy::grammar {

class CountClamp {
 public:
  // `length`: in bytes. Two states whose clamped forms are equal allow the same texts of that length, and still do so after
  // texts of that length which lead from there to one and the same state.
  CountClamp(Expressions& pool, size_t length) : pool_(pool), length_(length) {}
  NodeId Of(NodeId node);

 private:
  NodeId Make(NodeId node);
  NodeId OfList(NodeId node);
  NodeId OfRepetitions(NodeId node);
  // Whether each repetition of a list ends where a part begins with none of its bytes: then a text is at one place of the list.
  bool IsApart(NodeId node);
  // All bytes that an expression may contain, or more.
  ByteSet BytesOf(NodeId node, Allowance* steps);
  // Whether a repetition with a limit is inside.
  bool HasCount(NodeId node);

  Expressions& pool_;
  size_t length_;
  PagedList<NodeId> known_;     // by node, kNothing until made
  enum class Known : uint8_t { kUnasked, kNo, kYes };
  PagedList<Known> has_count_;  // by node
  int depth_ = 0;               // of expressions in progress; deeper ones stay as they are
};

}  // namespace onpolicy::grammar
