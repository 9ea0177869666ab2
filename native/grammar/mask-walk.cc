// One loop over the nodes in preorder; whole subtrees are dropped, or taken where a state takes anything of their alphabet.
#include "grammar/mask-walk.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::grammar {

// What new states and steps over several readings may cost in one mask: some 10 to 20 ms, reached by expressions of random
// ambiguity. A mask that needs more lacks tokens of several bytes, never single bytes, and is not remembered.
static constexpr uint64_t kMaskWork = 600000;
// A subtree of this many nodes is worth the question whether it can be taken whole.
static constexpr uint32_t kWorthAsking = 3;

MaskWalk::MaskWalk(const Vocabulary& vocabulary, Grammar& grammar, StateTable& states, TextReach& reach)
    : vocabulary_(vocabulary), grammar_(grammar), states_(states), reach_(reach) {
  levels_.resize(vocabulary.max_token_bytes() + 1u);
  path_.resize(vocabulary.max_token_bytes() + 1u);
}

void MaskWalk::Refuel() {
  last_work_ = grammar_.regex().work() + kMaskWork;
  reach_.StopAt(last_work_);
}

MaskWalk::Level MaskWalk::LevelOf(StateId state) {
  const Config* only = nullptr;
  for (const Config& config : states_.Configs(state)) {
    if ((config.node & kTokenSetBit) || config.node == kEpsilon) continue;
    if (only) return {nullptr, kNothing, 0, state};
    only = &config;
  }
  if (!only) return {grammar_.regex().Row(kEpsilon), kEpsilon, 0, state};
  return {grammar_.regex().Row(only->node), only->node, only->stack, state};
}

void MaskWalk::WalkSlice(const Slice& slice, const ByteSet& first, StateId state, std::string& text,
                         std::vector<uint32_t>* tokens, std::vector<uint32_t>* uncertain) {
  levels_[0] = LevelOf(state);
  (slice.first_bytes & first).ForEach([&](unsigned byte) {
    const uint32_t root = slice.roots[byte];
    Run(slice, root, slice.trie[root].end, text, tokens, uncertain);
  });
}

void MaskWalk::WalkSubtree(const Slice& slice, uint32_t root, StateId state, std::string& text,
                           std::vector<uint32_t>* tokens) {
  // Down to the parent of the subtree's root, whose bytes any token below it tells.
  uint32_t below = root;
  while (slice.trie[below].token < 0) below++;
  const size_t depth = slice.trie[root].depth - 1u, base = text.size();
  const std::string_view bytes = vocabulary_.Bytes(static_cast<uint32_t>(slice.trie[below].token)).substr(0, depth);
  bool on_text = false;
  for (size_t i = 0; i < depth && state != kDeadState; i++) {
    state = states_.Follow(state, static_cast<uint8_t>(bytes[i]), text, &on_text);
    text.push_back(bytes[i]);
    path_[i] = bytes[i];
  }
  text.resize(base);
  if (state == kDeadState) return;
  levels_[depth] = LevelOf(state);
  Run(slice, root, slice.trie[root].end, text, tokens, nullptr);
}

Ending MaskWalk::EndingOf(NodeId node, StackId stack, size_t depth, std::string& text) {
  if (node == asked_node_ && stack == asked_stack_) return asked_;
  // An ending that took a key for granted does so again wherever the key cannot have begun within the token.
  const StateId granted = states_.GrantedEnding(node, stack);
  if (granted != kDeadState && !std::memchr(path_.data(), '"', depth - 1) && grammar_.TakeForGranted(0))
    return {granted, false, false};
  const size_t base = text.size();
  text.append(path_, 0, depth);
  const uint64_t assumptions = grammar_.assumptions();
  const Ending ending = states_.EndingAt(node, stack, text);
  text.resize(base);
  if (!ending.on_text && assumptions == grammar_.assumptions()) {
    asked_node_ = node;
    asked_stack_ = stack;
    asked_ = ending;
  }
  return ending;
}

// A first look, at what the walk needs in any case.
bool MaskWalk::MayLoop(NodeId node, uint8_t byte) {
  return byte >= 0x80 || grammar_.regex().Next(node, byte) == node;
}

void MaskWalk::Run(const Slice& slice, uint32_t at, uint32_t end, std::string& text, std::vector<uint32_t>* tokens,
                   std::vector<uint32_t>* uncertain) {
  RegexPool& regex = grammar_.regex();
  const TrieNode* const trie = slice.trie.data();
  const auto add = [&](const TrieNode& node) {
    if (node.token < 0) return;
    tokens->push_back(static_cast<uint32_t>(node.token));
    if (!node.has_duplicates) return;
    for (int32_t token = node.token; (token = vocabulary_.NextDuplicate(static_cast<uint32_t>(token))) >= 0;)
      tokens->push_back(static_cast<uint32_t>(token));
  };
  while (at < end) {
    const TrieNode& node = trie[at];
    const Level& level = levels_[node.depth - 1u];
    path_[node.depth - 1u] = static_cast<char>(node.byte);
    StateId next_state;
    bool on_text = false;
    if (level.row) {
      NodeId entry = level.row[node.byte];
      if (entry == kUnasked) entry = regex.Entry(level.node, node.byte);
      if (entry == kNothing) {
        at = node.end;
        continue;
      }
      const NodeId next = entry & ~kAcceptBit;
      Ending ending;
      if (entry != next) ending = EndingOf(next, level.stack, node.depth, text);
      if (entry == next || ending.completes) {
        // Nothing ends here but perhaps the whole: the walk stays in the one reading.
        if (node.end - at >= kWorthAsking && !IsSpent() && MayLoop(next, trie[at + 1].byte) &&
            reach_.Loops(next, node.below)) {
          tokens->insert(tokens->end(), slice.tokens.begin() + slice.tokens_before[at],
                         slice.tokens.begin() + slice.tokens_before[node.end]);
          at = node.end;
          continue;
        }
        add(node);
        if (++at == node.end) continue;
        if (IsSpent()) {
          at = node.end;
        } else {
          levels_[node.depth] = {regex.Row(next), next, level.stack, kDeadState};
        }
        continue;
      }
      next_state = ending.state;
      on_text = ending.on_text;
    } else {
      text.append(path_, 0, node.depth - 1u);
      next_state = states_.Follow(level.state, node.byte, text, &on_text);
      text.resize(text.size() - (node.depth - 1u));
    }
    if (on_text && uncertain) {
      uncertain->push_back(at);
      at = node.end;
      continue;
    }
    if (next_state == kDeadState) {
      at = node.end;
      continue;
    }
    add(node);
    regex.Charge(1);
    if (++at == node.end) continue;
    if (IsSpent()) {
      at = node.end;
    } else {
      levels_[node.depth] = LevelOf(next_state);
    }
  }
}

}  // namespace onpolicy::grammar
