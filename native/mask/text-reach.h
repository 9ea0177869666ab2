// An automaton state and an alphabet -> what it does with every text of that alphabet, so that tries need no walk.
#pragma once
#include <unordered_map>
#include <vector>

#include "mask/text-class.h"
#include "mask/vocabulary.h"
#include "regex/pool.h"

namespace onpolicy::grammar {

class TextReach {
 public:
  static constexpr uint16_t kEndless = 0xFFFF;

  // `regex` must outlive this.
  explicit TextReach(RegexPool& regex) : regex_(regex), budget_(regex.budget()) {}

  // The state accepts every text of so many code points of a slice's alphabet.
  uint16_t Reach(NodeId node, SliceClass kind);
  // Whether all text of these classes leads from the state back to it, and through states that do not end.
  bool Loops(NodeId node, TextClasses text) {
    const TextClasses loops = node < loops_.size() && loops_[node] ? loops_[node] : FindLoops(node);
    if (text & ~loops & ~kWideText) return false;
    return !(text & kWideText) || LoopsOverWide(node);
  }
  // Whether all bytes that this one stands for (AlikeByte) lead to one state.
  bool TakesAlike(NodeId node, uint8_t byte);
  // Whether all text without quote and backslash stays inside the terminal, and no control character may follow it.
  bool IsInsideString(NodeId node);

 private:
  static constexpr uint16_t kUnknownReach = 0xFFFE;
  enum class Known : uint8_t { kUnasked, kNo, kYes };
  struct Depths {
    uint16_t depth[kSliceClasses] = {kUnknownReach, kUnknownReach, kUnknownReach, kUnknownReach};
  };

  TextClasses FindLoops(NodeId node);
  bool LoopsOverWide(NodeId node);
  // Adds the successors of `from` over `bytes` to `to`; false when one of them is dead.
  bool Advance(const std::vector<NodeId>& from, const ByteSet& bytes, std::vector<NodeId>* to);

  bool IsSpent() const { return budget_.IsSpent(Phase::kMask); }

  RegexPool& regex_;
  Budget& budget_;
  std::unordered_map<NodeId, Depths> reach_;
  std::unordered_map<NodeId, bool> inside_string_;
  std::vector<TextClasses> loops_;        // by node: classes of ASCII and kKnownLoops; 0: not known yet
  PagedList<uint8_t> alike_;              // by node: two bits for each of kAlikeFirst, whether it is known and the answer
  PagedList<Known> wide_;                 // by node: whether text beyond ASCII loops, too
};

}  // namespace onpolicy::grammar
