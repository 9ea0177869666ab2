// Building blocks that several notations share: free text up to a trigger, and runs of chunks.
#pragma once
#include <string>
#include <vector>

#include "grammar/pushdown/rule-set.h"

namespace onpolicy::grammar {

struct Trigger {
  std::string text;
  RuleExpr body;  // follows the trigger
};

// Texts that contain none of `words`.
NodeId TextWithout(RegexPool& pool, const std::vector<std::string>& words);
// Free text; behind a trigger its body must follow. `loop`: free text again after that, else the end. `excludes` never occur in the free
// text.
RuleExpr Dispatch(Grammar& grammar, RuleSet& rules, const std::vector<Trigger>& triggers,
                  const std::vector<std::string>& excludes, bool loop);
// Any run of neighbouring chunks, including the empty run.
NodeId ChunkRun(RegexPool& pool, const std::vector<std::string>& chunks);
// Texts of `node` of which no proper prefix is a text of `node`.
NodeId Shortest(RegexPool& pool, NodeId node);

}  // namespace onpolicy::grammar
