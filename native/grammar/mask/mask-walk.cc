// One loop over the nodes in preorder. Whole subtrees are skipped, or added where a state loops over their alphabet.
#include "grammar/mask/mask-walk.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::grammar {

MaskWalk::MaskWalk(const Vocabulary& vocabulary, Grammar& grammar, StateTable& states, TextReach& reach)
    : vocabulary_(vocabulary), grammar_(grammar), states_(states), reach_(reach), budget_(grammar.regex().budget()),
      short_(grammar.regex(), kShortBytes), long_(grammar.regex(), vocabulary.max_token_bytes()) {
  levels_.resize(vocabulary.max_token_bytes() + 1u);
  path_.resize(vocabulary.max_token_bytes() + 1u);
}

void MaskWalk::Begin(uint64_t work) {
  key_tokens_.clear();
  took_open_key_ = false;
  item_tokens_.clear();
  grammar_.SwapNames({});
  const uint64_t divisor = divisor_;
  budget_.Begin(Phase::kMask, work / divisor);
  budget_.Begin(Phase::kTerminalByte, (work + limits::kTerminalByteWork) / divisor);
  grammar_.regex().BeginStep((work + limits::kMaskByteWork) / divisor);
  budget_.Begin(Phase::kSearch, limits::kSearchWork / divisor);
}

MaskWalk::Level MaskWalk::LevelOf(const Config& parse) {
  return {grammar_.regex().Row(parse.node), parse.node, parse.stack, kDeadState, grammar_.stacks().EndsAll(parse.stack)};
}

MaskWalk::Level MaskWalk::LevelOf(StateId state) {
  const Config* only = nullptr;
  for (const Config& config : states_.Configs(state)) {
    if ((config.node & kTokenSetBit) || config.node == kEpsilon) continue;
    if (only) return {nullptr, kNothing, 0, state, false};
    only = &config;
  }
  if (!only) return {grammar_.regex().Row(kEpsilon), kEpsilon, 0, state, false};
  return LevelOf(*only);
}

void MaskWalk::WalkSlice(const Slice& slice, const ByteSet& first, StateId state, MatchedText& text,
                         std::vector<uint32_t>* tokens, std::vector<uint32_t>* uncertain) {
  levels_[0] = LevelOf(state);
  (slice.first_bytes & first).ForEach([&](unsigned byte) {
    const uint32_t root = slice.roots[byte];
    Run(slice, root, slice.trie[root].end, text, tokens, uncertain);
  });
}

void MaskWalk::SetPath(const TriePlace& place) {
  const Slice& slice = vocabulary_.slices()[place.slice];
  // Every token below the place begins with these bytes.
  const uint32_t token = slice.tokens[slice.tokens_before[place.node]];
  vocabulary_.Bytes(token).copy(path_.data(), slice.trie[place.node].depth);
}

void MaskWalk::WalkSubtree(const TriePlace& place, StateId state, MatchedText& text, std::vector<uint32_t>* tokens) {
  const Slice& slice = vocabulary_.slices()[place.slice];
  // Walks down to the parent of the subtree's root.
  const size_t depth = slice.trie[place.node].depth - 1u, base = text.size();
  if (depth > 0 && IsSpent()) return;
  SetPath(place);
  bool on_text = false;
  for (size_t i = 0; i < depth && state != kDeadState; i++) {
    state = states_.Follow(state, static_cast<uint8_t>(path_[i]), text, &on_text);
    text.push_back(path_[i]);
  }
  text.Shorten(base);
  if (state == kDeadState) return;
  levels_[depth] = LevelOf(state);
  Run(slice, place.node, slice.trie[place.node].end, text, tokens, nullptr);
}

Ending MaskWalk::EndingOf(NodeId node, StackId stack, size_t depth, MatchedText& text) {
  const size_t base = text.size();
  text.append(std::string_view(path_).substr(0, depth));
  const Ending ending = states_.EndingAt(node, stack, text);
  text.Shorten(base);
  return ending;
}

// Returns true if an item that begins like this could be equal to the one before it. Bytes that only open an item are excluded, see
// SchemaRules::HasPlenty.
static bool MayRepeatItem(std::string_view begin) {
  char last = 0;
  bool is_open = true;
  for (char c : begin) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (last == 0 && std::string_view("\"[{-0123456789tfn").find(c) == std::string_view::npos) return false;
    is_open = last == 0 ? c == '"' || c == '[' || c == '{' : is_open && last != '"' && c == '"';
    last = c;
  }
  return last != 0 && !is_open;
}

void MaskWalk::NoteAssumptions(const Grammar::Assumptions& before, const TokenTrie& trie, uint32_t at, bool after_quote) {
  const TrieNode& root = trie.trie[at];
  if (before.keys != grammar_.assumptions().keys) {
    if (after_quote) {
      key_tokens_.insert(key_tokens_.end(), trie.tokens.begin() + trie.tokens_before[at],
                         trie.tokens.begin() + trie.tokens_before[root.end]);
    } else {
      took_open_key_ = true;
    }
  }
  if (before.ends != grammar_.assumptions().ends)
    for (uint32_t i = trie.tokens_before[at]; i < trie.tokens_before[root.end]; i++)
      item_tokens_.push_back({trie.tokens[i], kAnyRest});
  if (before.begins == grammar_.assumptions().begins) return;
  for (uint32_t node = at + 1; node < root.end; node++) {
    const uint32_t rest = trie.trie[node].depth - static_cast<uint32_t>(root.depth);
    for (uint32_t i = trie.tokens_before[node]; i < trie.tokens_before[node + 1]; i++) {
      const std::string_view bytes = vocabulary_.Bytes(trie.tokens[i]);
      if (MayRepeatItem(bytes.substr(bytes.size() - rest))) item_tokens_.push_back({trie.tokens[i], rest});
    }
  }
}

// A search would be needed for every byte.
const ByteSet* MaskWalk::BytesToAsk(const TrieNode& node, NodeId state) {
  return node.is_wide && !grammar_.regex().node(state).searches ? &grammar_.regex().FirstBytes(state) : nullptr;
}

void MaskWalk::RunBelow(const TokenTrie& by_bytes, uint32_t at, MatchedText& text, std::vector<uint32_t>* tokens,
                        std::vector<uint32_t>* uncertain) {
  const TrieNode& node = by_bytes.trie[at];
  const Level& level = levels_[node.depth];
  const ByteSet* const bytes = level.row ? BytesToAsk(node, level.node) : nullptr;
  if (!bytes) return Run(by_bytes, at + 1, node.end, text, tokens, uncertain);
  const WideNode& wide = by_bytes.WideOf(at);
  (wide.bytes & *bytes).ForEach([&](unsigned byte) {
    const uint32_t child = by_bytes.ChildOf(wide, static_cast<uint8_t>(byte));
    Run(by_bytes, child, by_bytes.trie[child].end, text, tokens, uncertain);
  });
}

void MaskWalk::Run(const TokenTrie& by_bytes, uint32_t at, uint32_t end, MatchedText& text, std::vector<uint32_t>* tokens,
                   std::vector<uint32_t>* uncertain) {
  RegexPool& regex = grammar_.regex();
  const TrieNode* const trie = by_bytes.trie.data();
  const auto add = [&](uint32_t from, uint32_t to) {
    const uint32_t* const all = by_bytes.tokens.data();
    tokens->insert(tokens->end(), all + by_bytes.tokens_before[from], all + by_bytes.tokens_before[to]);
  };
  while (at < end) {
    const TrieNode& node = trie[at];
    const Level& level = levels_[node.depth - 1u];
    path_[node.depth - 1u] = static_cast<char>(node.byte);
    budget_.Spend(node.depth & 1);
    if (IsBeyond(*tokens) || (root_depth_ + node.depth > 1 && IsSpent())) return;
    StateId next_state;
    bool on_text = false;
    const Grammar::Assumptions before = grammar_.assumptions();
    if (level.row) {
      NodeId entry = level.row[node.byte];
      if (entry == kUnasked) entry = regex.Entry(level.node, node.byte);
      if (entry == kNothing) {
        at = node.end;
        continue;
      }
      const NodeId next = entry & ~kAcceptBit;
      Ending ending;
      if (entry != next && !level.completes) ending = EndingOf(next, level.stack, node.depth, text);
      if (entry == next || level.completes || ending.completes) {
        // The terminal does not end here, or only with the whole text, so that there is still one parse.
        add(at, at + 1);
        if (++at == node.end) continue;
        if (!IsSpent()) {
          levels_[node.depth] = {regex.Row(next), next, level.stack, kDeadState, level.completes};
          if (!node.is_wide) continue;
          RunBelow(by_bytes, at - 1, text, tokens, uncertain);
        }
        at = node.end;
        continue;
      }
      next_state = ending.state;
      on_text = ending.on_text;
    } else {
      text.append(std::string_view(path_).substr(0, node.depth - 1u));
      next_state = states_.Follow(level.state, node.byte, text, &on_text);
      text.Shorten(text.size() - (node.depth - 1u));
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
    if (before != grammar_.assumptions())
      NoteAssumptions(before, by_bytes, at, after_quote_ || std::memchr(path_.data(), '"', node.depth - 1u));
    add(at, at + 1);
    if (++at == node.end) continue;
    if (!IsSpent()) {
      levels_[node.depth] = LevelOf(next_state);
      RunBelow(by_bytes, at - 1, text, tokens, uncertain);
    }
    at = node.end;
  }
}

}  // namespace onpolicy::grammar
