// Nothing -> the pool that others begin with: any character and any text inside a JSON string, with all their states. Nearly every
// schema needs them; they are made once in a process, and never change.
#include "regex/char-class.h"
#include "regex/pool.h"

namespace onpolicy::grammar {

// Computes the rows of all states behind one.
static void ComputeStates(RegexPool& pool, NodeId start) {
  std::vector<NodeId> open{start};
  std::vector<bool> known(pool.size());
  while (!open.empty()) {
    const NodeId state = open.back();
    open.pop_back();
    pool.FirstBytes(state);
    for (unsigned byte = 0; byte < 256; byte++) {
      const NodeId next = pool.Next(state, static_cast<uint8_t>(byte));
      known.resize(pool.size());
      if (next == kNothing || known[next]) continue;
      known[next] = true;
      open.push_back(next);
    }
  }
}

const RegexPool& RegexPool::Common() {
  static const RegexPool* const common = [] {
    auto* const made = new RegexPool(Bare{});
    const NodeId quote = made->Literal("\"");
    for (const TextForm form : {TextForm::kJson, TextForm::kJsonAnyway})
      ComputeStates(*made, made->Concat({quote, CharEncoder(*made, form).AnyText(), quote}));
    return made;
  }();
  return *common;
}

RegexPool::RegexPool() {
  const RegexPool& common = Common();
  CopyFrom(common);
  edges_.CopyFrom(common.edges_);
}

}  // namespace onpolicy::grammar
