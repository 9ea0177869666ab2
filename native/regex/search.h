// An expression -> whether its language is empty, and how many texts it has. Cached by node.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "regex/edges.h"

namespace onpolicy::grammar {

class RegexPool;

class LanguageSearch {
 public:
  LanguageSearch(RegexPool& pool, EdgeTable& edges) : pool_(pool), edges_(edges) {}
  // False when the language is empty. Searches only below And, Not and leaves.
  bool IsLive(NodeId id);
  // The same in a step, once more where no search could decide: with kStuckSearchWork for each, as long as all work is below `end`.
  bool IsLiveIn(NodeId id, uint64_t end);
  // Whether the answer for a node is cached.
  bool IsKnown(NodeId id) { return live_.Reach(id) != kUnknown; }
  // Number of texts in the language, or `cap` when there are that many or more. Where the work is spent: `cap`, or with
  // `is_sure` the number found so far.
  uint64_t CountTexts(NodeId id, uint64_t cap, bool is_sure);
  // From now on searches are short.
  void Bind() { is_bound_ = true; }

 private:
  enum class Finding { kText, kNothing, kUnknown };
  // A short text of an expression without And, Not and leaves; null where it would be long.
  const std::string* ShortText(NodeId id);
  std::optional<std::string> MakeShortText(const Node& node);
  // Whether a text is in the language; And, Not and Alternate by their parts.
  bool Takes(NodeId id, std::string_view text);
  // Whether a short text of one part, or those of several in a row, is a text of the whole intersection.
  bool HasTextOfParts(NodeId intersection);
  static constexpr uint8_t kUnknown = 0, kLive = 1, kDead = 2;  // values of live_
  bool Search(NodeId start);
  // Whether a search may stop at a node: some text is known to follow.
  bool IsGoal(NodeId id);
  Finding Explore(NodeId start, bool is_deep, size_t limit, uint64_t end);
  void CountState();
  NodeId Relaxed(NodeId id);

  RegexPool& pool_;
  EdgeTable& edges_;
  PagedList<uint8_t> live_;  // by node
  std::unordered_map<NodeId, std::optional<std::string>> short_texts_;
  std::unordered_map<NodeId, NodeId> relaxed_;
  std::unordered_set<NodeId> undecided_;  // in a step; they are not searched again, so that all ways to them agree
  size_t searched_ = 0;  // states that searches have looked at
  bool is_bound_ = false;
  uint64_t patient_end_ = 0;  // of all work, of a search that goes on where others gave up
};

}  // namespace onpolicy::grammar
