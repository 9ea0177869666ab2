// Free text and its ends as expressions.
#include "grammar/pushdown/text-tools.h"

namespace onpolicy::grammar {

static NodeId OneOf(RegexPool& pool, const std::vector<std::string>& words) {
  std::vector<NodeId> options;
  for (const std::string& word : words) options.push_back(pool.Literal(word));
  return pool.Alternate(std::move(options));
}

NodeId TextWithout(RegexPool& pool, const std::vector<std::string>& words) {
  return pool.Not(pool.Concat({kAnyText, OneOf(pool, words), kAnyText}));
}

RuleExpr Dispatch(Grammar& grammar, RuleSet& rules, const std::vector<Trigger>& triggers,
                  const std::vector<std::string>& excludes, bool loop) {
  RegexPool& pool = grammar.regex();
  std::vector<std::string> words = excludes;
  for (const Trigger& trigger : triggers) words.push_back(trigger.text);
  const NodeId free = TextWithout(pool, words);
  if (triggers.empty()) return RuleExpr::Text(free);
  // Text up to the end of the first of `words`, without any of the excluded words.
  const NodeId up_to_word = pool.And({Shortest(pool, pool.Concat(kAnyText, OneOf(pool, words))),
                                      pool.Not(pool.Concat(kAnyText, OneOf(pool, excludes)))});
  const uint32_t again = rules.Add();
  std::vector<RuleExpr> options;
  for (const Trigger& trigger : triggers) {
    const NodeId head = pool.And({up_to_word, pool.Concat(kAnyText, pool.Literal(trigger.text))});
    std::vector<RuleExpr> parts{RuleExpr::Text(head), trigger.body};
    if (loop) parts.push_back(RuleExpr::Reference(again));
    options.push_back(RuleExpr::Sequence(std::move(parts)));
  }
  options.push_back(RuleExpr::Text(free));
  rules.Define(again, RuleExpr::Choice(std::move(options)));
  return RuleExpr::Reference(again);
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
