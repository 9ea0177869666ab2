// Expressions -> their forms, from the forms of their parts.
#include <atomic>

#include "regex/pool.h"

namespace onpolicy::grammar {

Form RegexPool::MakeForm(NodeId id) const {
  const Node& node = nodes_[id];
  Form form = Form::Seed().With(static_cast<uint64_t>(node.kind));
  // The first ones are the same in every pool, and refer to each other.
  if (id <= kAnyText) return form;
  switch (node.kind) {
    case Kind::kBytes:
      for (uint64_t word : sets_[node.min].words) form = form.With(word);
      return form;
    case Kind::kConcat:
      return form.With(forms_[node.a]).With(forms_[node.b]);
    case Kind::kAlternate:
    case Kind::kAnd: {
      // Children are in the order of their numbers, which differ between pools.
      Form all;
      for (uint32_t i = node.min; i < node.max; i++) all.Add(Form::Seed().With(forms_[children_[i]]));
      return form.With(node.max - node.min).With(all);
    }
    case Kind::kNot:
      return form.With(forms_[node.a]);
    case Kind::kRepeat:
      return form.With(forms_[node.a]).With(PairKey(node.min, node.max));
    case Kind::kLeaf:
      return form.With(leaf_forms_[node.a]).With(node.b);
    default:
      return form.With(node.a);
  }
}

Form RegexPool::FormOfAutomaton(const Automaton& automaton) {
  static std::atomic<uint64_t> others{0};
  const std::string content = automaton.Content();
  return content.empty() ? Form::Seed().With(++others) : Form::Seed().With(content);
}

}  // namespace onpolicy::grammar
