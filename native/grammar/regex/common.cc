// No input -> the pool that all others begin with: any character and any text inside a JSON string, with all their states. Nearly every
// schema needs them; they are made once per process and never change.
#include <algorithm>

#include "grammar/regex/char-class.h"
#include "grammar/regex/pool.h"

namespace onpolicy::grammar {

// Computes the rows of all states reachable from one.
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

static std::shared_ptr<const TextTable> MakeTextTable(RegexPool& pool, NodeId text) {
  auto table = std::make_shared<TextTable>();
  table->text = text;
  std::vector<NodeId> states{text};
  for (size_t at = 0; at < states.size(); at++)
    for (unsigned byte = 0; byte < 256; byte++) {
      if (byte == 0) table->next.emplace_back().fill(TextTable::kDead);
      const NodeId next = pool.Next(states[at], static_cast<uint8_t>(byte));
      if (next == kNothing) continue;
      const auto known = std::find(states.begin(), states.end(), next);
      table->next[at][byte] = static_cast<uint8_t>(known - states.begin());
      if (known == states.end()) states.push_back(next);
    }
  return table;
}

const RegexPool& RegexPool::Common() {
  static const RegexPool* const common = [] {
    auto* const made = new RegexPool(Bare{});
    const NodeId quote = made->Literal("\"");
    for (const TextForm form : {TextForm::kJson, TextForm::kJsonAnyway})
      ComputeStates(*made, made->Concat({quote, CharEncoder(*made, form).AnyText(), quote}));
    made->text_table_ = MakeTextTable(*made, CharEncoder(*made, TextForm::kJson).AnyText());
    return made;
  }();
  return *common;
}

RegexPool::RegexPool() {
  const RegexPool& common = Common();
  CopyFrom(common);
  derivatives_.CopyFrom(common.derivatives_);
}

}  // namespace onpolicy::grammar
