// What an automaton state does with text of a given alphabet, whatever that text is: asked before a trie is walked.
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

  // Keeps a reference to `regex`.
  explicit TextReach(RegexPool& regex) : regex_(regex) {}

  // Looks ahead stop, with what is certain by then, once the automaton has cost so much work in all.
  void StopAt(uint64_t work) { last_work_ = work; }
  // How many code points of a slice's alphabet a state takes, whatever they are.
  uint16_t Reach(NodeId node, SliceClass kind);
  // Whether all text of these classes leads from the state back to it, and through states that do not end.
  bool Loops(NodeId node, TextClasses text) {
    const TextClasses loops = node < loops_.size() && loops_[node] ? loops_[node] : FindLoops(node);
    if (text & ~loops & ~kWideText) return false;
    return !(text & kWideText) || LoopsOverWide(node);
  }
  // Whether a state that takes text without quote and backslash lives on in its terminal, and meets no control character.
  bool IsInsideString(NodeId node);

 private:
  static constexpr uint16_t kUnknownReach = 0xFFFE;
  struct Depths {
    uint16_t depth[kSliceClasses] = {kUnknownReach, kUnknownReach, kUnknownReach, kUnknownReach};
  };

  TextClasses FindLoops(NodeId node);
  bool LoopsOverWide(NodeId node);
  // Adds the successors of `from` over `bytes` to `to`; false when one of them is dead.
  bool Advance(const std::vector<NodeId>& from, const ByteSet& bytes, std::vector<NodeId>* to);

  bool IsSpent() const { return regex_.work() > last_work_; }
  // A look ahead begins, which is worth only so much work.
  void BeginLook();

  RegexPool& regex_;
  uint64_t last_work_ = UINT64_MAX;
  uint64_t look_end_ = UINT64_MAX;  // where the look ahead in progress gives up
  std::unordered_map<NodeId, Depths> reach_;
  std::unordered_map<NodeId, bool> inside_string_;
  std::vector<TextClasses> loops_;        // by node: classes of ASCII and kKnownLoops; 0: not known yet
  std::unordered_map<NodeId, bool> wide_;  // whether text beyond ASCII loops, too
};

}  // namespace onpolicy::grammar
