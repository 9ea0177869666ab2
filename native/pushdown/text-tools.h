// Building blocks that several notations share: free text up to a trigger, and runs of chunks.
#pragma once
#include <string>
#include <vector>

#include "pushdown/rule-set.h"

namespace onpolicy::grammar {

struct Trigger {
  std::string text;
  RuleExpr body;  // what follows the trigger
};

// Text in which none of `words` occurs.
NodeId TextWithout(RegexPool& pool, const std::vector<std::string>& words);
// Free text; when a trigger has been written its body must follow. `loop`: then free text again, else the end.
// `excludes` never occur in the free text.
RuleExpr Dispatch(Grammar& grammar, RuleSet& rules, const std::vector<Trigger>& triggers,
                  const std::vector<std::string>& excludes, bool loop);
// Any run of neighbouring chunks, the empty one too.
NodeId ChunkRun(RegexPool& pool, const std::vector<std::string>& chunks);
// Texts of `node` that have no shorter text of `node` as their beginning.
NodeId Shortest(RegexPool& pool, NodeId node);

}  // namespace onpolicy::grammar
