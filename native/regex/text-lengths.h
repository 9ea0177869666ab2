// An expression inside a JSON string -> how many characters its texts have, so that a limit on them needs no search.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "regex/expressions.h"

namespace onpolicy::grammar {

class TextLengths {
 public:
  explicit TextLengths(Expressions& pool) : pool_(pool) {}
  enum class Answer { kText, kNothing, kUnknown };
  // Whether an expression has a text, where it is "so many characters" and one that needs no search; else kUnknown.
  Answer HasText(NodeId node);

 private:
  static constexpr uint64_t kMany = 1u << 30;
  // No more characters than the shortest text has, and no fewer.
  struct Bounds {
    uint64_t least, enough;
  };
  Bounds Of(NodeId node);
  Bounds Make(NodeId node);

  Expressions& pool_;
  std::unordered_map<NodeId, Bounds> known_;
};

}  // namespace onpolicy::grammar
