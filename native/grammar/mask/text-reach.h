// An automaton state and an alphabet -> whether it accepts the texts of that alphabet, so that tries need no walk.
#pragma once
#include <unordered_map>
#include <vector>

#include "grammar/mask/vocabulary.h"
#include "grammar/regex/pool.h"

namespace onpolicy::grammar {

class TextReach {
 public:
  static constexpr uint16_t kEndless = 0xFFFF;

  // `regex` must outlive this.
  explicit TextReach(RegexPool& regex) : regex_(regex), budget_(regex.budget()) {}

  // Returns the number of code points up to which the state accepts every text of a slice's alphabet.
  uint16_t Reach(NodeId node, SliceClass kind);
  // Returns true if all bytes that this one represents (kAlikeFirst) lead to one state.
  bool TakesAlike(NodeId node, uint8_t byte);

 private:
  static constexpr uint16_t kUnknownReach = 0xFFFE;
  struct Depths {
    uint16_t depth[kSliceClasses] = {kUnknownReach, kUnknownReach, kUnknownReach, kUnknownReach};
  };

  // Adds the successors of `from` over `bytes` to `to`. Returns false if one of them is dead.
  bool Advance(const std::vector<NodeId>& from, const ByteSet& bytes, std::vector<NodeId>* to);

  bool IsSpent() const { return budget_.IsSpent(Phase::kMask); }

  RegexPool& regex_;
  Budget& budget_;
  std::unordered_map<NodeId, Depths> reach_;
  PagedList<uint8_t> alike_;              // by node: two bits for each of kAlikeFirst: whether it is cached, and the answer
};

}  // namespace onpolicy::grammar
