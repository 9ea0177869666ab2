// Interning of states, and the step over one byte.
#include "grammar/mask/state-table.h"

#include <algorithm>

namespace onpolicy::grammar {

StateId StateTable::Intern(std::vector<Config>* configs) {
  if (configs->size() == 1) return Intern(configs->front());
  std::sort(configs->begin(), configs->end(), [](const Config& a, const Config& b) {
    return a.node != b.node ? a.node < b.node : a.stack < b.stack;
  });
  uint64_t hash = configs->size();
  for (const Config& config : *configs) hash = MixBits(hash ^ PairKey(config.node, config.stack));
  const StateId known = state_index_.FindHash(hash, [&](StateId id) { return states_[id] == *configs; });
  if (known != HashIndex::kNone) return known;
  const StateId id = static_cast<StateId>(states_.size());
  states_.push_back(*configs);
  state_index_.AddHash(hash, id);
  return id;
}

StateId StateTable::Intern(const Config& only) {
  const uint64_t key = PairKey(only.node, only.stack);
  const StateId known = single_index_.Find(key);
  if (known != HashIndex::kNone) return known;
  const StateId id = static_cast<StateId>(states_.size());
  states_.push_back({only});
  single_index_.Add(key, id);
  return id;
}

// Adds a configuration; two with the same automaton state become one with both stacks.
void StateTable::Merge(const Config& config, size_t from, std::vector<Config>* out) {
  for (size_t i = from; i < out->size(); i++)
    if ((*out)[i].node == config.node) {
      if (config.node != kEpsilon) (*out)[i].stack = grammar_.stacks().Union((*out)[i].stack, config.stack);
      return;
    }
  out->push_back(config);
}

// Adds a parse whose automaton has reached `node`, and records its exits from the terminal. A parse that cannot end here continues, even if
// no search could decide whether it can: its row shows it.
void StateTable::Arrive(NodeId node, StackId stack, size_t from, std::vector<Config>* out) {
  if (!grammar_.regex().IsNullable(node) || grammar_.regex().HasNext(node)) Merge({node, stack}, from, out);
  for (uint32_t tag : grammar_.regex().AcceptedTags(node)) exits_.push_back({stack, tag});
}

// Adds the parses that follow the recorded exits, in one closure, so that equal parses become one.
void StateTable::Leave(const MatchedText& text, size_t from, std::vector<Config>* out) {
  if (exits_.empty()) return;
  for (const Config& after : grammar_.After(exits_, text)) Merge(after, from, out);
}

void StateTable::Step(const std::vector<Config>& configs, uint8_t byte, const MatchedText& text,
                      std::vector<Config>* out) {
  const size_t from = out->size();
  exits_.clear();
  for (const Config& config : configs) {
    if (config.node & kTokenSetBit) continue;
    const NodeId next = grammar_.regex().Next(config.node, byte);
    if (next != kNothing) Arrive(next, config.stack, from, out);
  }
  Leave(text, from, out);
}

void StateTable::StepToken(const std::vector<Config>& configs, uint32_t token, const MatchedText& text,
                           std::vector<Config>* out) {
  exits_.clear();
  for (const Config& config : configs)
    if ((config.node & kTokenSetBit) && grammar_.TokensOf(config.node & ~kTokenSetBit).Has(token))
      exits_.push_back({config.stack, 0});
  Leave(text, 0, out);
}

StateId StateTable::Follow(StateId state, uint8_t byte, MatchedText& text, bool* on_text) {
  *on_text = false;
  NodeId entry = kNothing;
  StackId stack = 0;
  unsigned alive = 0;
  for (const Config& config : states_[state]) {
    if (config.node & kTokenSetBit) continue;
    const NodeId next = grammar_.regex().Entry(config.node, byte);
    if (next == kNothing) continue;
    entry = next;
    stack = config.stack;
    alive++;
  }
  if (alive == 0) return kDeadState;
  if (alive == 1) {
    if (!(entry & kAcceptBit)) return Intern(Config{entry, stack});
    text.push_back(static_cast<char>(byte));
    const Ending ending = EndingAt(entry & ~kAcceptBit, stack, text);
    text.pop_back();
    *on_text = ending.on_text;
    return ending.state;
  }
  const uint64_t reads = grammar_.text_reads();
  after_.clear();
  text.push_back(static_cast<char>(byte));
  Step(states_[state], byte, text, &after_);
  text.pop_back();
  *on_text = reads != grammar_.text_reads();
  return after_.empty() ? kDeadState : Intern(&after_);
}

Ending StateTable::EndingAt(NodeId node, StackId stack, const MatchedText& text) {
  HashIndex& index = ending_index_[grammar_.assumes_new()];
  const uint64_t key = PairKey(node, stack);
  const uint32_t known = index.Find(key);
  const auto note_names = [&](const KnownEnding& ending) {
    for (const KeyNames* names : ending.names) grammar_.NoteNames(names);
  };
  if (known != HashIndex::kNone && !endings_[known].on_text) {
    grammar_.NoteAssumptions(endings_[known].assumptions);
    note_names(endings_[known]);
    return endings_[known];
  }
  const uint64_t reads = grammar_.text_reads();
  const Grammar::Assumptions before = grammar_.assumptions();
  const std::vector<const KeyNames*> outer = grammar_.SwapNames({});
  after_.clear();
  exits_.clear();
  Arrive(node, stack, 0, &after_);
  Leave(text, 0, &after_);
  KnownEnding ending;
  if (!after_.empty()) ending.state = Intern(&after_);
  ending.on_text = reads != grammar_.text_reads();
  ending.assumptions = grammar_.assumptions().Since(before);
  ending.names = grammar_.SwapNames(outer);
  note_names(ending);
  if (known != HashIndex::kNone) return ending;
  const std::vector<uint32_t>& tags = grammar_.regex().AcceptedTags(node);
  if (tags.size() == 1 && !ending.on_text && ending.assumptions == Grammar::Assumptions()) {
    const std::vector<Config>& after = grammar_.After(stack, tags[0], text);
    ending.completes = after.size() == 1 && after[0].node == kEpsilon;
  }
  index.Add(key, static_cast<uint32_t>(endings_.size()));
  return endings_.emplace_back(std::move(ending));
}

}  // namespace onpolicy::grammar
