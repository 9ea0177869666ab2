// An expression -> one that is equivalent for every text up to some length, with large counts replaced: states of a counted repetition that
// are far from its end become one.
#pragma once
#include "grammar/regex/expressions.h"

namespace onpolicy::grammar {

class CountClamp {
 public:
  // `length`: in bytes. Two states whose clamped forms are equal allow the same texts of that length, also after texts of that length that
  // lead from both to the same state.
  CountClamp(Expressions& pool, size_t length) : pool_(pool), length_(length) {}
  NodeId Of(NodeId node);

 private:
  NodeId Make(NodeId node);
  NodeId OfList(NodeId node);
  NodeId OfRepetitions(NodeId node);
  // Returns true if each repetition of a list ends where a part begins with none of its bytes. A text is then at only one place of the
  // list.
  bool IsApart(NodeId node);
  // Returns all bytes that an expression may contain, or more.
  ByteSet BytesOf(NodeId node, Allowance* steps);
  // Returns true if an expression contains a repetition with a limit.
  bool HasCount(NodeId node);

  Expressions& pool_;
  size_t length_;
  PagedList<NodeId> known_;     // by node, kNothing until made
  enum class Known : uint8_t { kUnasked, kNo, kYes };
  PagedList<Known> has_count_;  // by node
  int depth_ = 0;               // number of expressions in progress; deeper ones are not changed
};

}  // namespace onpolicy::grammar
