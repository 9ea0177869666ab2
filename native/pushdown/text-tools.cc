// A search automaton (Aho-Corasick) as a leaf of the pool, and what is built on it.
#include "pushdown/text-tools.h"

#include <array>
#include <memory>

namespace onpolicy::grammar {

namespace {

// States are nodes of the word tree. `wanted` < 0 accepts text without any word, else text that ends with word number
// `wanted` and contains no word before.
class WordAutomaton : public Automaton {
 public:
  struct Tree {
    struct Node {
      std::array<uint32_t, 256> next;
      uint32_t fallback = 0;
      std::vector<uint32_t> words;
    };
    std::vector<Node> nodes;
  };

  static std::shared_ptr<Tree> Build(const std::vector<std::string>& words) {
    auto tree = std::make_shared<Tree>();
    constexpr uint32_t kNone = 0xFFFFFFFFu;
    const auto add = [&] {
      tree->nodes.emplace_back();
      tree->nodes.back().next.fill(kNone);
      return static_cast<uint32_t>(tree->nodes.size() - 1);
    };
    add();
    for (uint32_t word = 0; word < words.size(); word++) {
      uint32_t at = 0;
      for (char c : words[word]) {
        const uint8_t byte = static_cast<uint8_t>(c);
        if (tree->nodes[at].next[byte] == kNone) {
          const uint32_t made = add();
          tree->nodes[at].next[byte] = made;
        }
        at = tree->nodes[at].next[byte];
      }
      tree->nodes[at].words.push_back(word);
    }
    std::vector<uint32_t> queue;
    for (unsigned byte = 0; byte < 256; byte++) {
      uint32_t& next = tree->nodes[0].next[byte];
      if (next == kNone) {
        next = 0;
      } else {
        queue.push_back(next);
      }
    }
    for (size_t i = 0; i < queue.size(); i++) {
      const uint32_t at = queue[i];
      const uint32_t fallback = tree->nodes[at].fallback;
      const std::vector<uint32_t> inherited = tree->nodes[fallback].words;
      tree->nodes[at].words.insert(tree->nodes[at].words.end(), inherited.begin(), inherited.end());
      for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t& next = tree->nodes[at].next[byte];
        if (next == kNone) {
          next = tree->nodes[fallback].next[byte];
        } else {
          tree->nodes[next].fallback = tree->nodes[fallback].next[byte];
          queue.push_back(next);
        }
      }
    }
    return tree;
  }

  // Words from number `wanted_count` on are forbidden even at the end.
  WordAutomaton(std::shared_ptr<Tree> tree, int64_t wanted, uint32_t wanted_count)
      : tree_(std::move(tree)), wanted_(wanted), wanted_count_(wanted_count) {}

  uint32_t Next(uint32_t state, uint8_t byte) override {
    if (!tree_->nodes[state].words.empty()) return kDead;
    const uint32_t next = tree_->nodes[state].next[byte];
    if (tree_->nodes[next].words.empty() || Accepts(next)) return next;
    return kDead;
  }
  bool Accepts(uint32_t state) override {
    const std::vector<uint32_t>& words = tree_->nodes[state].words;
    if (wanted_ < 0) return words.empty();
    bool found = false;
    for (uint32_t word : words) {
      if (word >= wanted_count_) return false;
      found = found || word == wanted_;
    }
    return found;
  }

 private:
  std::shared_ptr<Tree> tree_;
  int64_t wanted_;
  uint32_t wanted_count_;
};

}  // namespace

NodeId TextWithout(RegexPool& pool, const std::vector<std::string>& words) {
  if (words.empty()) return kAnyText;
  return pool.Leaf(pool.Own(std::make_unique<WordAutomaton>(WordAutomaton::Build(words), -1, 0)), 0);
}

RuleExpr Dispatch(Grammar& grammar, RuleSet& rules, const std::vector<Trigger>& triggers,
                  const std::vector<std::string>& excludes, bool loop, bool at_least_one) {
  RegexPool& pool = grammar.regex();
  std::vector<std::string> words;
  for (const Trigger& trigger : triggers) words.push_back(trigger.text);
  words.insert(words.end(), excludes.begin(), excludes.end());
  if (words.empty()) return RuleExpr::Text(kAnyText);
  const auto tree = WordAutomaton::Build(words);
  const NodeId free = pool.Leaf(pool.Own(std::make_unique<WordAutomaton>(tree, -1, 0)), 0);
  if (triggers.empty()) return RuleExpr::Text(free);
  const uint32_t again = rules.Add();
  std::vector<RuleExpr> options;
  for (uint32_t i = 0; i < triggers.size(); i++) {
    const NodeId head = pool.Leaf(
        pool.Own(std::make_unique<WordAutomaton>(tree, i, static_cast<uint32_t>(triggers.size()))), 0);
    std::vector<RuleExpr> parts{RuleExpr::Text(head), triggers[i].body};
    if (loop) parts.push_back(RuleExpr::Reference(again));
    options.push_back(RuleExpr::Sequence(std::move(parts)));
  }
  RuleExpr first = RuleExpr::Choice(options);
  options.push_back(RuleExpr::Text(free));
  rules.Define(again, RuleExpr::Choice(std::move(options)));
  return at_least_one ? first : RuleExpr::Reference(again);
}

NodeId ChunkRun(RegexPool& pool, const std::vector<std::string>& chunks) {
  NodeId tail = kEpsilon;
  std::vector<NodeId> starts{kEpsilon};
  for (size_t i = chunks.size(); i-- > 0;) {
    tail = pool.Concat(pool.Literal(chunks[i]), pool.Optional(tail));
    starts.push_back(tail);
  }
  return pool.Alternate(std::move(starts));
}

NodeId Shortest(RegexPool& pool, NodeId node) {
  const NodeId some = pool.Bytes(ByteSet::All());
  return pool.And({node, pool.Not(pool.Concat({node, some, kAnyText}))});
}

}  // namespace onpolicy::grammar
