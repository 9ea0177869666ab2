// The step over one byte, and the mask: whole slices by a look at the automaton, the rest by a walk of their tries.
#include "grammar/constraint.h"

#include <algorithm>
#include <cstring>

namespace onpolicy::grammar {

// Remembered masks hold at most this many token ids per constraint.
static constexpr size_t kMaskMemoTokens = 4u << 20;
// A walk that steps through more configurations than this stops; what it found so far stays allowed.
static constexpr size_t kWalkFuel = 1500000;
static constexpr uint16_t kEndless = 0xFFFF;

Constraint::Constraint(std::shared_ptr<const Vocabulary> vocabulary, std::shared_ptr<Grammar> grammar, Symbol start,
                       std::vector<std::string> warnings)
    : vocabulary_(std::move(vocabulary)), grammar_(std::move(grammar)), warnings_(std::move(warnings)) {
  ended_ = InternState({});
  start_ = InternState(grammar_->Start(start));
}

StateId Constraint::InternState(std::vector<Config> configs) {
  std::sort(configs.begin(), configs.end(), [](const Config& a, const Config& b) {
    return a.node != b.node ? a.node < b.node : a.stack < b.stack;
  });
  uint64_t hash = configs.size();
  for (const Config& config : configs)
    hash = (hash ^ ((static_cast<uint64_t>(config.node) << 32) | config.stack)) * 0x9E3779B97F4A7C15ull;
  auto [begin, end] = state_index_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (states_[it->second].configs == configs) return it->second;
  const StateId id = static_cast<StateId>(states_.size());
  states_.push_back({std::move(configs), nullptr});
  state_index_.emplace(hash, id);
  return id;
}

// Adds a configuration; two with the same automaton state become one with both stacks.
static void Merge(Grammar& grammar, const Config& config, size_t from, std::vector<Config>* out) {
  for (size_t i = from; i < out->size(); i++)
    if ((*out)[i].node == config.node) {
      if (config.node != kEpsilon) (*out)[i].stack = grammar.Union((*out)[i].stack, config.stack);
      return;
    }
  out->push_back(config);
}

void Constraint::Step(const Config* configs, size_t count, uint8_t byte, std::string_view text,
                      std::vector<Config>* out) {
  RegexPool& regex = grammar_->regex();
  const size_t from = out->size();
  for (size_t i = 0; i < count; i++) {
    const Config config = configs[i];
    if (config.node & kTokenSetBit) continue;
    const NodeId next = regex.Next(config.node, byte);
    if (next == kNothing) continue;
    if (regex.HasNext(next)) Merge(*grammar_, {next, config.stack}, from, out);
    for (uint32_t tag : regex.AcceptedTags(next))
      for (const Config& after : grammar_->After(config.stack, tag, text)) Merge(*grammar_, after, from, out);
  }
}

bool Constraint::IsComplete(StateId state) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Config& config : states_[state].configs)
    if (config.node == kEpsilon) return true;
  return false;
}

bool Constraint::Accept(StateId state, uint32_t token, std::string& text, StateId* next) {
  if (token >= vocabulary_->size()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<Config> start = states_[state].configs;
  if (vocabulary_->IsEos(token)) {
    for (const Config& config : start)
      if (config.node == kEpsilon) {
        *next = ended_;
        return true;
      }
  }
  const size_t base = text.size();
  std::vector<Config> result;
  if (!vocabulary_->IsSpecial(token)) {
    std::vector<Config> current = start, following;
    for (char byte : vocabulary_->Bytes(token)) {
      text.push_back(byte);
      following.clear();
      Step(current.data(), current.size(), static_cast<uint8_t>(byte), text, &following);
      current.swap(following);
      if (current.empty()) break;
    }
    if (text.size() > base) result = std::move(current);
  }
  text.resize(base);
  text += vocabulary_->Bytes(token);
  for (const Config& config : start)
    if ((config.node & kTokenSetBit) && grammar_->TokensOf(config.node & ~kTokenSetBit).Has(token))
      for (const Config& after : grammar_->After(config.stack, 0, text)) Merge(*grammar_, after, 0, &result);
  if (result.empty()) {
    text.resize(base);
    return false;
  }
  *next = InternState(std::move(result));
  return true;
}

void Constraint::AddTokens(int32_t token, Mask* mask) const {
  for (; token >= 0; token = vocabulary_->NextDuplicate(static_cast<uint32_t>(token)))
    mask->tokens.push_back(static_cast<uint32_t>(token));
}

void Constraint::Walk(const std::vector<TrieNode>& trie, const std::vector<Config>& configs, std::string& text,
                      Mask* mask) {
  RegexPool& regex = grammar_->regex();
  struct Level {
    size_t begin, end;  // in `stack`
    const NodeId* row;  // of the only configuration, else null
  };
  std::vector<Config> stack = configs;
  std::vector<Level> levels(1);
  const auto make_level = [&](size_t begin) {
    Level level{begin, stack.size(), nullptr};
    if (stack.size() - begin == 1 && !(stack[begin].node & kTokenSetBit)) level.row = regex.Row(stack[begin].node).data();
    return level;
  };
  levels[0] = make_level(0);
  const size_t base = text.size();
  size_t fuel = kWalkFuel;
  for (uint32_t at = 0; at < trie.size();) {
    const TrieNode& node = trie[at];
    levels.resize(node.depth);
    const Level level = levels.back();
    const size_t begin = level.end;
    stack.resize(begin);
    bool alive;
    if (level.row) {
      const NodeId next = level.row[node.byte];
      if (next == kNothing) {
        at = node.end;
        continue;
      }
      if (!regex.IsAccepting(next)) {
        if (node.token >= 0) AddTokens(node.token, mask);
        at++;
        if (at < node.end) {
          stack.push_back({next, stack[level.begin].stack});
          levels.push_back({begin, begin + 1, regex.Row(next).data()});
          text.resize(base + node.depth - 1);
          text.push_back(static_cast<char>(node.byte));
        }
        continue;
      }
    }
    text.resize(base + node.depth - 1);
    text.push_back(static_cast<char>(node.byte));
    const size_t used = level.end - level.begin;
    // `Step` appends to the vector it reads from, so it gets a copy of its input.
    const std::vector<Config> input(stack.begin() + static_cast<std::ptrdiff_t>(level.begin),
                                    stack.begin() + static_cast<std::ptrdiff_t>(level.end));
    Step(input.data(), used, node.byte, text, &stack);
    alive = stack.size() > begin;
    if (!alive) {
      at = node.end;
      continue;
    }
    if (node.token >= 0) AddTokens(node.token, mask);
    levels.push_back(make_level(begin));
    at++;
    const size_t cost = 1 + stack.size() - begin;
    if (fuel < cost) break;
    fuel -= cost;
  }
  text.resize(base);
}

// Bytes that may follow inside one code point of a class, as pairs of ranges after each lead byte.
struct CodePointPath {
  ByteSet lead;
  ByteSet second;
  unsigned more;  // continuation bytes after the second
};

static const std::vector<CodePointPath>& PathsOf(SliceClass kind) {
  static const std::vector<std::vector<CodePointPath>> paths = [] {
    const ByteSet continuation = ByteSet::Range(0x80, 0xBF);
    const ByteSet lower = ByteSet::Range('a', 'z');
    ByteSet identifier = lower | ByteSet::Range('A', 'Z') | ByteSet::Range('0', '9');
    identifier.Add('_');
    ByteSet quoted;
    quoted.Add('"');
    quoted.Add('\\');
    const ByteSet printable = ByteSet::Range(0x20, 0x7E) & ~quoted;
    std::vector<CodePointPath> unicode{{printable, {}, 0},
                                       {ByteSet::Range(0xC2, 0xDF), continuation, 0},
                                       {ByteSet::Range(0xE0, 0xE0), ByteSet::Range(0xA0, 0xBF), 1},
                                       {ByteSet::Range(0xE1, 0xEC) | ByteSet::Range(0xEE, 0xEF), continuation, 1},
                                       {ByteSet::Range(0xED, 0xED), ByteSet::Range(0x80, 0x9F), 1},
                                       {ByteSet::Range(0xF0, 0xF0), ByteSet::Range(0x90, 0xBF), 2},
                                       {ByteSet::Range(0xF1, 0xF3), continuation, 2},
                                       {ByteSet::Range(0xF4, 0xF4), ByteSet::Range(0x80, 0x8F), 2}};
    return std::vector<std::vector<CodePointPath>>{
        {{lower, {}, 0}}, {{identifier, {}, 0}}, {{printable, {}, 0}}, std::move(unicode)};
  }();
  return paths[static_cast<size_t>(kind)];
}

uint16_t Constraint::ReachOf(NodeId node, SliceClass kind) {
  Reach& reach = reach_[node];
  if (!reach.known) {
    std::fill(std::begin(reach.depth), std::end(reach.depth), kEndless);
    reach.known = true;
    for (unsigned index = 0; index < kSliceClasses; index++) reach.depth[index] = 0xFFFE;  // not asked yet
  }
  uint16_t& depth = reach.depth[static_cast<size_t>(kind)];
  if (depth != 0xFFFE) return depth;
  RegexPool& regex = grammar_->regex();
  std::vector<NodeId> level{node}, seen{node};
  const ByteSet continuation = ByteSet::Range(0x80, 0xBF);
  bool alive = true;
  uint16_t length = 0;
  // Adds the successors over `bytes` and reports whether all of them live.
  const auto follow = [&](const std::vector<NodeId>& from, const ByteSet& bytes, std::vector<NodeId>* to) {
    for (NodeId state : from) {
      if (!(bytes & ~regex.FirstBytes(state)).IsEmpty()) return false;
      const auto& row = regex.Row(state);
      NodeId last = kNothing;
      bytes.ForEach([&](unsigned byte) {
        if (row[byte] == last) return;
        last = row[byte];
        if (std::find(to->begin(), to->end(), last) == to->end()) to->push_back(last);
      });
    }
    return true;
  };
  for (; alive && !level.empty() && length < 31 && seen.size() < 400; length++) {
    std::vector<NodeId> next;
    for (const CodePointPath& path : PathsOf(kind)) {
      std::vector<NodeId> leads, tails;
      alive = follow(level, path.lead, &leads);
      if (alive && !path.second.IsEmpty()) {
        alive = follow(leads, path.second, &tails);
        for (unsigned more = 0; alive && more < path.more; more++) {
          std::vector<NodeId> deeper;
          alive = follow(tails, continuation, &deeper);
          tails = std::move(deeper);
        }
        leads = std::move(tails);
      }
      if (!alive || leads.size() > 100) {
        alive = false;
        break;
      }
      for (NodeId state : leads)
        if (std::find(next.begin(), next.end(), state) == next.end()) next.push_back(state);
    }
    if (!alive) break;
    level.clear();
    for (NodeId state : next)
      if (std::find(seen.begin(), seen.end(), state) == seen.end()) {
        seen.push_back(state);
        level.push_back(state);
      }
  }
  depth = alive && level.empty() ? kEndless : length;
  return depth;
}

void Constraint::ComputeMask(StateId state, std::string& text, Mask* mask) {
  std::vector<Config> configs;
  ByteSet first;
  for (const Config& config : states_[state].configs)
    if (!(config.node & kTokenSetBit) && config.node != kEpsilon) {
      configs.push_back(config);
      first = first | grammar_->regex().FirstBytes(config.node);
    }
  if (configs.empty()) return;
  const std::vector<Slice>& slices = vocabulary_->slices();
  for (size_t i = 0; i < slices.size(); i++) {
    const Slice& slice = slices[i];
    if (slice.trie.empty() || (slice.first_bytes & first).IsEmpty()) continue;
    bool contained = false;
    if (slice.kind != SliceClass::kOther && (slice.first_bytes & ~first).IsEmpty())
      for (const Config& config : configs) contained = contained || ReachOf(config.node, slice.kind) >= slice.max_length;
    if (contained) {
      mask->slices |= 1u << i;
    } else {
      Walk(slice.trie, configs, text, mask);
    }
  }
}

bool Constraint::FillMask(StateId state, std::string& text, uint32_t* mask) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t words = vocabulary_->mask_words();
  Mask fresh;
  Mask* found = states_[state].mask.get();
  if (!found) {
    const uint64_t reads = grammar_->text_reads();
    ComputeMask(state, text, &fresh);
    found = &fresh;
    if (reads == grammar_->text_reads() && mask_memo_tokens_ + fresh.tokens.size() < kMaskMemoTokens) {
      mask_memo_tokens_ += fresh.tokens.size() + 32;
      states_[state].mask = std::make_unique<Mask>(std::move(fresh));
      found = states_[state].mask.get();
    }
  }
  bool is_first = true;
  for (size_t i = 0; i < vocabulary_->slices().size(); i++) {
    if (!((found->slices >> i) & 1)) continue;
    const uint32_t* slice = vocabulary_->slices()[i].mask.data();
    if (is_first) {
      std::memcpy(mask, slice, words * 4);
    } else {
      for (uint32_t word = 0; word < words; word++) mask[word] |= slice[word];
    }
    is_first = false;
  }
  if (is_first) std::memset(mask, 0, words * 4);
  for (uint32_t token : found->tokens) mask[token >> 5] |= 1u << (token & 31);
  bool complete = state == ended_;
  bool open = false;
  for (const Config& config : states_[state].configs) {
    if (config.node == kEpsilon) complete = true;
    if (!(config.node & kTokenSetBit)) continue;
    open = true;
    const TokenSet& set = grammar_->TokensOf(config.node & ~kTokenSetBit);
    if (!set.inverted) {
      for (uint32_t token : set.tokens)
        if (token < vocabulary_->size()) mask[token >> 5] |= 1u << (token & 31);
    } else {
      for (uint32_t token = 0; token < vocabulary_->size(); token++)
        if (set.Has(token) && !vocabulary_->IsEos(token)) mask[token >> 5] |= 1u << (token & 31);
    }
  }
  if (complete)
    for (uint32_t token : vocabulary_->eos_tokens())
      if (token < vocabulary_->size()) mask[token >> 5] |= 1u << (token & 31);
  if (!open && !complete) return false;
  for (uint32_t token = 0; token < vocabulary_->size(); token++) {
    if (!((mask[token >> 5] >> (token & 31)) & 1)) return false;
  }
  return true;
}

std::string Constraint::ForcedBytes(StateId state, std::string text, size_t limit) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Config> current = states_[state].configs, following;
  std::string forced;
  while (forced.size() < limit && !current.empty()) {
    ByteSet first;
    for (const Config& config : current) {
      if ((config.node & kTokenSetBit) || config.node == kEpsilon) return forced;
      first = first | grammar_->regex().FirstBytes(config.node);
    }
    if (first.Count() != 1) return forced;
    uint8_t byte = 0;
    first.ForEach([&](unsigned only) { byte = static_cast<uint8_t>(only); });
    text.push_back(static_cast<char>(byte));
    following.clear();
    Step(current.data(), current.size(), byte, text, &following);
    if (following.empty()) return forced;
    forced.push_back(static_cast<char>(byte));
    current.swap(following);
  }
  return forced;
}

}  // namespace onpolicy::grammar
