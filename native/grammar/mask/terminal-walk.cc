// Walks inside one terminal, and behind its exits.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/scoped-value.h"
#include "grammar/mask/mask-walk.h"

namespace onpolicy::grammar {

// Limit of counted lengths; longer tokens have this length.
static constexpr size_t kMaxLength = 255;
// Up to this many tokens are walked one by one if their like bytes must be distinguished.
static constexpr size_t kFewTokens = 1000;

bool MaskWalk::AddExit(NodeId node, const TriePlace& place, size_t depth, TerminalMask* mask) {
  size_t index = static_cast<size_t>(std::find(exit_nodes_.begin(), exit_nodes_.end(), node) - exit_nodes_.begin());
  if (index == exit_nodes_.size()) {
    if (index == limits::kExits) return false;
    exit_nodes_.push_back(node);
    mask->exits.emplace_back();
    mask->exits.back().path.assign(path_, 0, depth);
    mask->exits.back().ends = node == kEpsilon;
  }
  TerminalExit& exit = mask->exits[index];
  exit.places.push_back(place);
  return exit.places.size() <= limits::kExitPlaces;
}

bool MaskWalk::RunInside(uint32_t index, uint32_t at, uint32_t end, TerminalMask* mask) {
  const Slice& slice = vocabulary_.slices()[index];
  const TrieNode* const trie = slice.trie.data();
  const auto add = [&](uint32_t from, uint32_t to) { Add(slice.TokensOf(from, to), mask); };
  while (at < end) {
    const TrieNode& node = trie[at];
    path_[node.depth - 1u] = static_cast<char>(node.byte);
    budget_.Spend(node.depth & 1);
    if (budget_.IsSpent(Phase::kTerminalByte) && mask->has_tokens()) return true;
    const NodeId entry = EntryInside(node.depth - 1u, node.byte);
    const NodeId next = entry & ~kAcceptBit;
    if (entry == kNothing) {
      at = node.end;
    } else if (entry != next) {
      const bool after_quote = std::memchr(path_.data(), '"', node.depth - 1u) != nullptr;
      if (!AddExit(next, {index, at, after_quote}, node.depth, mask)) return false;
      at = node.end;
    } else if (IsSpent()) {
      add(at, at + 1);
      at = node.end;
    } else {
      add(at, at + 1);
      if (node.end > at + 1) SetInside(node.depth, next);
      if (node.is_wide && !RunInsideBelow(index, at, mask)) return false;
      at = node.is_wide ? node.end : at + 1;
    }
  }
  return true;
}

bool MaskWalk::RunInsideBelow(uint32_t index, uint32_t at, TerminalMask* mask) {
  const Slice& slice = vocabulary_.slices()[index];
  const TrieNode& node = slice.trie[at];
  const ByteSet* const bytes = BytesToAsk(node, levels_[node.depth].node);
  if (!bytes) return RunInside(index, at + 1, node.end, mask);
  const WideNode& wide = slice.WideOf(at);
  bool is_worth = true;
  (wide.bytes & *bytes).ForEach([&](unsigned byte) {
    const uint32_t child = slice.ChildOf(wide, static_cast<uint8_t>(byte));
    is_worth = is_worth && RunInside(index, child, slice.trie[child].end, mask);
  });
  return is_worth;
}

void MaskWalk::AddToList(std::span<const uint32_t> tokens, TerminalMask* mask) const {
  if (mask->tokens.size() + tokens.size() <= kDenseTokens) {
    mask->tokens.insert(mask->tokens.end(), tokens.begin(), tokens.end());
    return;
  }
  mask->dense.assign(vocabulary_.mask_words(), 0);
  Add(tokens, mask);
}

bool MaskWalk::RunAlike(const TokenTrie& alike, NodeId node, TerminalMask* mask) {
  SetInside(0, node);
  for (uint32_t at = 1; at < alike.trie.size();) {
    const TrieNode& here = alike.trie[at];
    const NodeId from = levels_[here.depth - 1u].node;
    budget_.Spend(here.depth & 1);
    if (IsSpent()) return false;
    if (!reach_.TakesAlike(from, here.byte)) {
      if (!RunEach(alike.TokensOf(at, here.end), here.depth - 1u, from, mask)) return false;
      at = here.end;
      continue;
    }
    const NodeId next = EntryInside(here.depth - 1u, here.byte);
    if (next & kAcceptBit) return false;
    if (next != kNothing) Add(alike.TokensOf(at, at + 1), mask);
    if (next != kNothing && here.end > at + 1) SetInside(here.depth, next);
    at = next == kNothing ? here.end : at + 1;
  }
  return true;
}

bool MaskWalk::RunEach(std::span<const uint32_t> tokens, size_t depth, NodeId node, TerminalMask* mask) {
  if (tokens.size() > kFewTokens) return false;
  for (const uint32_t& token : tokens) {
    NodeId state = node;
    for (char byte : vocabulary_.Bytes(token).substr(depth)) {
      budget_.Spend(1);
      state = grammar_.regex().Entry(state, static_cast<uint8_t>(byte)) & entry_bits_;
      if (state & kAcceptBit) return false;
      if (state == kNothing) break;
    }
    if (state != kNothing) Add({&token, 1}, mask);
  }
  return !IsSpent();
}

template <typename Fill>
std::shared_ptr<const TerminalMask> MaskWalk::Cached(const Form& form, Fill fill) {
  if (grammar_.regex().IsExact())
    if (auto known = vocabulary_.terminal_masks().Find(form)) return known;
  auto mask = std::make_shared<TerminalMask>();
  exit_nodes_.clear();
  if (fill(mask.get())) {
    mask->is_worth = true;
    for (TerminalExit& exit : mask->exits) MergePlaces(vocabulary_, &exit);
    if (!mask->dense.empty()) {
      const uint32_t* const whole = mask->slices ? vocabulary_.SliceUnion(mask->slices) : nullptr;
      for (uint32_t word = 0; whole && word < vocabulary_.mask_words(); word++) mask->dense[word] |= whole[word];
      for (uint32_t token : std::exchange(mask->tokens, {})) mask->dense[token >> 5] |= 1u << (token & 31);
    }
    mask->tokens.shrink_to_fit();
  } else {
    *mask = {};
  }
  if (!IsSpent() && grammar_.regex().IsExact()) vocabulary_.terminal_masks().Add(form, mask);
  return mask;
}

std::vector<std::shared_ptr<const TerminalMask>> MaskWalk::WalkTerminal(NodeId node, bool completes) {
  const ScopedValue<NodeId> bits(entry_bits_, completes ? ~kAcceptBit : ~NodeId{0});
  const NodeId for_short = short_.Of(node);
  if (for_short == node) return {WalkPart(node, Length::kAny)};
  const NodeId for_long = long_.Of(node);
  if (for_long == for_short) return {WalkPart(for_short, Length::kAny)};
  return {WalkPart(for_short, Length::kShort), WalkPart(for_long, Length::kLong)};
}

NodeId MaskWalk::WithoutLimit(NodeId node) {
  RegexPool& regex = grammar_.regex();
  const auto [head, tail] = regex.SplitHead(node);
  const Node count = regex.node(head), end = regex.node(regex.SplitHead(tail).head);
  if (count.kind != NodeKind::kRepeat || count.max == kUnlimited || !regex.IsCharacter(count.a)) return kNothing;
  if (end.kind != NodeKind::kBytes || !(regex.set_of(end) == ByteSet::Range('"', '"'))) return kNothing;
  return regex.Concat(regex.Repeat(count.a, 0, kUnlimited), tail);
}

bool MaskWalk::TakeUpToLimit(NodeId node, TerminalMask* mask) {
  const NodeId unlimited = WithoutLimit(node);
  if (unlimited == kNothing) return false;
  const std::shared_ptr<const TerminalMask> all = WalkPart(unlimited, Length::kAny);
  exit_nodes_.clear();
  if (IsSpent() || !all->is_worth) return false;
  const uint32_t most = grammar_.regex().node(grammar_.regex().SplitHead(node).head).max;
  const uint32_t* const short_enough = vocabulary_.UpToLength(static_cast<unsigned>(std::min<size_t>(most, kMaxLength)));
  mask->dense = all->dense.empty() ? vocabulary_.SliceBits(all->slices) : all->dense;
  for (uint32_t token : all->tokens) mask->dense[token >> 5] |= 1u << (token & 31);
  for (uint32_t word = 0; word < vocabulary_.mask_words(); word++) mask->dense[word] &= short_enough[word];
  return true;
}

std::shared_ptr<const TerminalMask> MaskWalk::WalkPart(NodeId node, Length length) {
  const Form form = grammar_.regex().FormOf(node).With(static_cast<uint64_t>(length)).With(entry_bits_);
  return Cached(form, [&](TerminalMask* mask) {
    const ByteSet first = grammar_.regex().FirstBytes(node);
    const std::vector<Slice>& slices = vocabulary_.slices();
    const bool has_alphabets = TakeUpToLimit(node, mask);
    SliceClass walked = SliceClass::kOther;   // the alphabet whose short tokens were looked up together
    bool has_walked = false;
    bool is_worth = true;
    for (uint32_t i = 0; i < slices.size() && is_worth; i++) {
      const Slice& slice = slices[i];
      if (has_alphabets && slice.kind < SliceClass::kOther) continue;
      if (slice.trie.empty() || (slice.first_bytes & first).IsEmpty()) continue;
      if (length != Length::kAny && slice.is_long != (length == Length::kLong)) continue;
      if (slice.kind < SliceClass::kOther && length != Length::kLong && (slice.first_bytes & ~first).IsEmpty() &&
          reach_.Reach(node, slice.kind) >= slice.max_length) {
        mask->slices |= 1u << i;
        continue;
      }
      if (static_cast<size_t>(slice.kind) < kAsciiClasses && !slice.is_long) {
        if (walked != slice.kind) has_walked = RunAlike(vocabulary_.AlikeTokens(slice.kind), node, mask);
        walked = slice.kind;
        if (has_walked) continue;
      }
      SetInside(0, node);
      (slice.first_bytes & first).ForEach([&](unsigned byte) {
        const uint32_t root = slice.roots[byte];
        is_worth = is_worth && RunInside(i, root, slice.trie[root].end, mask);
      });
    }
    return is_worth;
  });
}

void MaskWalk::WalkExits(const TerminalMask& mask, NodeId start, StackId stack, MatchedText& text,
                         std::vector<uint32_t>* tokens, std::vector<TriePlace>* uncertain) {
  const std::vector<Slice>& slices = vocabulary_.slices();
  for (const TerminalExit& exit : mask.exits) {
    if (IsBeyond(*tokens)) return;
    NodeId node = exit.ends ? kEpsilon : start;
    for (size_t i = 0; !exit.ends && i < exit.path.size(); i++)
      node = grammar_.regex().Next(node, static_cast<uint8_t>(exit.path[i]));
    exit.path.copy(path_.data(), exit.path.size());
    const Grammar::Assumptions before = grammar_.assumptions();
    const Ending ending = EndingOf(node, stack, exit.path.size(), text);
    if (ending.on_text) {
      uncertain->insert(uncertain->end(), exit.places.begin(), exit.places.end());
      continue;
    }
    if (ending.state == kDeadState) continue;
    if (before != grammar_.assumptions())
      for (const TriePlace& place : exit.places) NoteAssumptions(before, slices[place.slice], place.node, place.after_quote);
    // Walks each parse alone, so that it steps by its automaton's row.
    std::vector<Config> parses = states_.Configs(ending.state);
    std::erase_if(parses, [](const Config& config) { return (config.node & kTokenSetBit) || config.node == kEpsilon; });
    uncertain_nodes_.clear();
    if (exit.rest) {
      const size_t known = tokens->size(), known_keys = key_tokens_.size(), known_items = item_tokens_.size();
      tokens->insert(tokens->end(), exit.rest->tokens.begin(), exit.rest->tokens.begin() + exit.rest->tokens_before[1]);
      {
        const ScopedValue<bool> quote(after_quote_, exit.path.find('"') != std::string::npos);
        const ScopedValue<size_t> depth(root_depth_, exit.path.size());
        for (const Config& parse : parses) {
          levels_[0] = LevelOf(parse);
          RunBelow(*exit.rest, 0, text, tokens, &uncertain_nodes_);
        }
      }
      if (uncertain_nodes_.empty()) continue;
      // Results that depend on the text also depend on the bytes before the exit.
      tokens->resize(known);
      key_tokens_.resize(known_keys);
      item_tokens_.resize(known_items);
    }
    for (const TriePlace& place : exit.places) {
      const Slice& slice = slices[place.slice];
      const TrieNode& here = slice.trie[place.node];
      tokens->insert(tokens->end(), slice.tokens.begin() + slice.tokens_before[place.node],
                     slice.tokens.begin() + slice.tokens_before[place.node + 1]);
      if (here.end == place.node + 1 || parses.empty()) continue;
      SetPath(place);
      uncertain_nodes_.clear();
      for (const Config& parse : parses) {
        levels_[here.depth] = LevelOf(parse);
        RunBelow(slice, place.node, text, tokens, &uncertain_nodes_);
      }
      for (uint32_t at : uncertain_nodes_) uncertain->push_back({place.slice, at});
    }
  }
}

}  // namespace onpolicy::grammar
