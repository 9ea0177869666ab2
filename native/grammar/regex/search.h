// An expression -> whether its language is empty, and the number of its texts. Cached by node.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "grammar/regex/derivatives.h"

namespace onpolicy::grammar {

class RegexPool;

class LanguageSearch {
 public:
  LanguageSearch(RegexPool& pool, Derivatives& derivatives) : pool_(pool), derivatives_(derivatives) {}
  // Returns false if the language is empty. Searches only below And, Not and leaves.
  bool IsLive(NodeId id);
  // Does the same in a step, and repeats searches without an answer: with kStuckSearchWork each, while all work is below `end`.
  bool IsLiveIn(NodeId id, uint64_t end);
  // Returns true if the answer for a node is cached.
  bool IsKnown(NodeId id) { return live_.Reach(id) != kUnknown; }
  // Returns the number of texts in the language, or `cap` if there are at least that many. If the work limit is reached: `cap`, or with
  // `is_sure` the number found so far.
  uint64_t CountTexts(NodeId id, uint64_t cap, bool is_sure);
  // Ends the compilation: searches are short from now on.
  void Bind() { is_bound_ = true; }

 private:
  enum class Finding { kText, kNothing, kUnknown };
  // Returns a short text of an expression without And, Not and leaves, or null if it would be long.
  const std::string* ShortText(NodeId id);
  std::optional<std::string> MakeShortText(const Node& node);
  // Returns true if a text is in the language. And, Not and Alternate are decided by their parts, each of which is decided once per text.
  using Taken = std::unordered_map<NodeId, bool>;
  bool Takes(NodeId id, std::string_view text, Taken* known);
  bool TakesAnew(NodeId id, std::string_view text, Taken* known);
  // Returns true if a short text of one part, or the texts of several in a row, is a text of the whole intersection.
  bool HasTextOfParts(NodeId intersection);
  static constexpr uint8_t kUnknown = 0, kLive = 1, kDead = 2;  // values of live_
  bool Search(NodeId start);
  // Returns true if a search may stop at a node, because some text is known to follow.
  bool IsGoal(NodeId id);
  Finding Explore(NodeId start, bool is_deep, size_t limit, uint64_t end);
  void CountState();
  NodeId Relaxed(NodeId id);

  RegexPool& pool_;
  Derivatives& derivatives_;
  PagedList<uint8_t> live_;  // by node
  std::unordered_map<NodeId, std::optional<std::string>> short_texts_;
  std::unordered_map<NodeId, NodeId> relaxed_;
  std::unordered_set<NodeId> undecided_;  // in a step; not searched again, so that all ways to them agree
  size_t searched_ = 0;  // number of states that searches have visited
  bool is_bound_ = false;
  uint64_t patient_end_ = 0;  // limit of all work for a search that continues after others gave up
};

}  // namespace onpolicy::grammar
