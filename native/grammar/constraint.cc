// The step over one byte, and the mask: whole slices by a look at the automaton, the rest by a walk of their tries.
#include "grammar/constraint.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "grammar/json-value.h"

namespace onpolicy::grammar {

// Remembered masks take at most this many words per constraint; one with more tokens is kept as bits.
static constexpr size_t kMaskMemoWords = 8u << 20;
static constexpr size_t kDenseTokens = 1000;
// A walk that steps through more configurations than this stops; what it found so far stays allowed.
static constexpr size_t kWalkFuel = 1500000;
static constexpr uint16_t kEndless = 0xFFFF;
// A string's automaton with more states than this is not looked at as a whole.
static constexpr size_t kMaxStringStates = 400;
// So many states keep a table of the states after them, a kilobyte each.
static constexpr size_t kMaxTables = 4096;
// A subtree of this many nodes is worth the question whether it can be taken whole.
static constexpr uint32_t kWorthAsking = 3;

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
  states_.push_back({std::move(configs), nullptr, nullptr});
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

bool Constraint::IsFinal(StateId state) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<Config>& configs = states_[state].configs;
  return configs.size() == 1 && configs[0].node == kEpsilon;
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

void Constraint::AddTokens(int32_t token, std::vector<uint32_t>* tokens) const {
  for (; token >= 0; token = vocabulary_->NextDuplicate(static_cast<uint32_t>(token)))
    tokens->push_back(static_cast<uint32_t>(token));
}

bool Constraint::OnlyCompletes(const Config& config, std::string_view text) {
  const std::vector<uint32_t>& tags = grammar_->regex().AcceptedTags(config.node);
  if (tags.size() != 1) return false;
  const uint64_t key = (static_cast<uint64_t>(config.stack) << 32) | tags[0];
  auto [it, is_new] = only_completes_.emplace(key, false);
  if (is_new) {
    const std::vector<Config>& after = grammar_->After(config.stack, tags[0], text);
    it->second = after.size() == 1 && after[0].node == kEpsilon && grammar_->IsFixed(config.stack, tags[0]);
  }
  return it->second;
}

StateId Constraint::Follow(StateId state, uint8_t byte, std::string& text, bool* on_text) {
  if (states_[state].next && (*states_[state].next)[byte] != kUnknownState) return (*states_[state].next)[byte];
  const uint64_t reads = grammar_->text_reads(), assumptions = grammar_->assumptions();
  std::vector<Config> result;
  text.push_back(static_cast<char>(byte));
  Step(states_[state].configs.data(), states_[state].configs.size(), byte, text, &result);
  text.pop_back();
  const StateId next = result.empty() ? kDeadState : InternState(std::move(result));
  *on_text = reads != grammar_->text_reads();
  if (*on_text || assumptions != grammar_->assumptions()) return next;
  State& from = states_[state];
  if (!from.next && tables_ < kMaxTables) {
    tables_++;
    from.next = std::make_unique<std::array<StateId, 256>>();
    from.next->fill(kUnknownState);
  }
  if (from.next) (*from.next)[byte] = next;
  return next;
}

void Constraint::Walk(const Slice& slice, int64_t root, StateId state, std::string& text,
                      std::vector<uint32_t>* tokens, std::vector<uint32_t>* uncertain) {
  RegexPool& regex = grammar_->regex();
  const std::vector<TrieNode>& trie = slice.trie;
  // A state of one reading is stepped by its automaton's row alone, as long as nothing ends; it gets a number when asked.
  struct Level {
    const NodeId* row;
    Config only;
    StateId state;
  };
  std::vector<Level> levels(64);
  const size_t base = text.size();
  const auto level_of = [&](StateId state) {
    const std::vector<Config>& configs = states_[state].configs;
    const bool single = configs.size() == 1 && !(configs[0].node & kTokenSetBit);
    return Level{single ? regex.Row(configs[0].node) : nullptr, configs[0], state};
  };
  levels[0] = level_of(state);
  std::string path(64, '\0');  // bytes from the root down to the node
  uint32_t at = 0, end = static_cast<uint32_t>(trie.size());
  if (root >= 0) {
    // Down to the parent of the subtree's root, whose bytes any token below it tells.
    at = static_cast<uint32_t>(root);
    end = trie[at].end;
    uint32_t below = at;
    while (trie[below].token < 0) below++;
    const size_t depth = trie[at].depth - 1u;
    const std::string_view bytes = vocabulary_->Bytes(static_cast<uint32_t>(trie[below].token)).substr(0, depth);
    levels.resize(std::max<size_t>(levels.size(), depth + 64));
    path.resize(levels.size());
    bool on_text = false;
    for (size_t i = 0; i < depth && state != kDeadState; i++) {
      state = Follow(state, static_cast<uint8_t>(bytes[i]), text, &on_text);
      text.push_back(bytes[i]);
      path[i] = bytes[i];
    }
    text.resize(base);
    if (state == kDeadState) return;
    levels[depth] = level_of(state);
  }
  // The answer of OnlyCompletes for the last question: in free text it is asked at every node.
  StackId asked_stack = 0;
  uint32_t asked_tag = kUnlimited;
  bool only_completes = false;
  // Where a state takes any text of a class, subtrees of only such text are taken whole; the last answer is kept.
  NodeId asked_state = kNothing;
  SliceClass asked_class = SliceClass::kOther;
  bool takes_class = false;
  const auto takes_rest = [&](const TrieNode& node, NodeId state) {
    if (slice.tokens_before.empty() || node.rest == SliceClass::kOther || node.end - at < kWorthAsking) return false;
    if (state != asked_state || node.rest != asked_class) {
      asked_state = state;
      asked_class = node.rest;
      takes_class = ReachOf(state, node.rest) == kEndless;
    }
    return takes_class;
  };
  size_t fuel = kWalkFuel;
  while (at < end) {
    const TrieNode& node = trie[at];
    if (levels.size() <= node.depth) {
      levels.resize(node.depth + 64u);
      path.resize(node.depth + 64u);
    }
    Level& level = levels[node.depth - 1u];
    path[node.depth - 1u] = static_cast<char>(node.byte);
    if (level.row) {
      const NodeId entry = level.row[node.byte];
      if (entry == kNothing) {
        at = node.end;
        continue;
      }
      const NodeId next = entry & ~kAcceptBit;
      bool stays = entry == next;
      if (!stays) {
        // Where an end here leads nowhere but to the end of the whole, as in free text, the walk stays on one state.
        const std::vector<uint32_t>& tags = regex.AcceptedTags(next);
        if (tags.size() == 1) {
          if (tags[0] != asked_tag || level.only.stack != asked_stack) {
            asked_tag = tags[0];
            asked_stack = level.only.stack;
            text.append(path, 0, node.depth);
            only_completes = OnlyCompletes({next, level.only.stack}, text);
            text.resize(base);
          }
          stays = only_completes;
        }
      } else if (takes_rest(node, next)) {
        tokens->insert(tokens->end(), slice.tokens.begin() + slice.tokens_before[at],
                       slice.tokens.begin() + slice.tokens_before[node.end]);
        at = node.end;
        continue;
      }
      if (stays) {
        if (node.token >= 0) AddTokens(node.token, tokens);
        if (entry != next && !regex.HasNext(next)) {
          at = node.end;
        } else {
          if (++at < node.end) levels[node.depth] = {regex.Row(next), {next, level.only.stack}, kUnknownState};
        }
        continue;
      }
    }
    if (level.state == kUnknownState) level.state = InternState({level.only});
    const StateId* table = states_[level.state].next ? states_[level.state].next->data() : nullptr;
    StateId next = table ? table[node.byte] : kUnknownState;
    if (next == kUnknownState) {
      bool on_text = false;
      text.append(path, 0, node.depth - 1u);
      next = Follow(level.state, node.byte, text, &on_text);
      text.resize(base);
      if (on_text && uncertain) {
        uncertain->push_back(at);
        at = node.end;
        continue;
      }
    }
    if (next == kDeadState) {
      at = node.end;
      continue;
    }
    if (node.token >= 0) AddTokens(node.token, tokens);
    levels[node.depth] = level_of(next);
    at++;
    const size_t cost = 1 + states_[next].configs.size();
    if (fuel < cost) break;
    fuel -= cost;
  }
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
  const uint16_t known = reach_.try_emplace(node).first->second.depth[static_cast<size_t>(kind)];
  if (known != kUnknownReach) return known;
  RegexPool& regex = grammar_->regex();
  std::vector<NodeId> level{node}, seen{node};
  std::unordered_set<NodeId> known_states{node};
  const ByteSet continuation = ByteSet::Range(0x80, 0xBF);
  bool alive = true;
  uint16_t length = 0;
  // Adds the successors over `bytes` and reports whether all of them live.
  const auto follow = [&](const std::vector<NodeId>& from, const ByteSet& bytes, std::vector<NodeId>* to) {
    for (NodeId state : from) {
      if (!(bytes & ~regex.FirstBytes(state)).IsEmpty()) return false;
      const NodeId* row = regex.Row(state);
      NodeId last = kNothing;
      bytes.ForEach([&](unsigned byte) {
        const NodeId next = row[byte] & ~kAcceptBit;
        if (next == last) return;
        last = next;
        if (std::find(to->begin(), to->end(), last) == to->end()) to->push_back(last);
      });
    }
    return true;
  };
  for (; alive && !level.empty() && length < 31 && seen.size() < 3000; length++) {
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
      if (!alive || leads.size() > 500) {
        alive = false;
        break;
      }
      for (NodeId state : leads)
        if (std::find(next.begin(), next.end(), state) == next.end()) next.push_back(state);
    }
    if (!alive) break;
    level.clear();
    for (NodeId state : next)
      if (known_states.insert(state).second) {
        seen.push_back(state);
        level.push_back(state);
      }
  }
  const bool endless = alive && level.empty();
  // Everything seen on an endless way is endless too.
  for (NodeId state : seen)
    if (endless) reach_.try_emplace(state).first->second.depth[static_cast<size_t>(kind)] = kEndless;
  return reach_[node].depth[static_cast<size_t>(kind)] = endless ? kEndless : length;
}

bool Constraint::IsInsideString(NodeId node) {
  if (auto known = inside_string_.find(node); known != inside_string_.end()) return known->second;
  static const ByteSet plain = [] {
    ByteSet set = ByteSet::Range(0x20, 0xFF), quoted;
    quoted.Add('"');
    quoted.Add('\\');
    return set & ~quoted;
  }();
  RegexPool& regex = grammar_->regex();
  std::vector<NodeId> seen;
  std::unordered_set<NodeId> known_states;
  bool inside = true;
  const auto follow = [&](NodeId state) {
    const NodeId* row = regex.Row(state);
    NodeId last = kNothing;
    plain.ForEach([&](unsigned byte) {
      const NodeId entry = row[byte];
      if (entry == last || entry == kNothing) return;
      last = entry;
      inside = inside && !(entry & kAcceptBit);
      if (inside && known_states.insert(entry).second) seen.push_back(entry);
    });
  };
  follow(node);
  for (size_t i = 0; inside && i < seen.size(); i++) {
    inside = seen.size() < kMaxStringStates && (regex.FirstBytes(seen[i]) & ByteSet::Range(0, 0x1F)).IsEmpty();
    if (inside) follow(seen[i]);
  }
  if (inside)
    for (NodeId state : seen) inside_string_.emplace(state, true);
  return inside_string_[node] = inside;
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
    const auto is_inside = [&](const Config& config) { return IsInsideString(config.node); };
    if (slice.kind == SliceClass::kBroken && std::all_of(configs.begin(), configs.end(), is_inside)) continue;
    if (slice.kind < SliceClass::kBroken && (slice.first_bytes & ~first).IsEmpty())
      for (const Config& config : configs) contained = contained || ReachOf(config.node, slice.kind) >= slice.max_length;
    if (contained) {
      mask->slices |= 1u << i;
    } else {
      std::vector<uint32_t> uncertain;
      Walk(slice, -1, state, text, &mask->tokens, &uncertain);
      for (uint32_t node : uncertain) mask->uncertain.emplace_back(static_cast<uint32_t>(i), node);
    }
  }
}

// Whether some text goes on after `bytes`. Restores `text`.
bool Constraint::IsAlive(const std::vector<Config>& configs, std::string_view bytes, std::string& text) {
  const size_t base = text.size();
  std::vector<Config> current = configs, following;
  for (char byte : bytes) {
    text.push_back(byte);
    following.clear();
    Step(current.data(), current.size(), static_cast<uint8_t>(byte), text, &following);
    current.swap(following);
    if (current.empty()) break;
  }
  text.resize(base);
  return !current.empty();
}

// Takes back tokens that would close a key which the object has already.
void Constraint::RemoveRepeatedKeys(const std::vector<Config>& configs, std::string& text, uint32_t* mask) {
  const size_t open = FindOpenString(text);
  if (open == std::string::npos) return;
  const std::string written = text.substr(open + 1);
  const auto try_again = [&](uint32_t token) {
    if (((mask[token >> 5] >> (token & 31)) & 1) && !IsAlive(configs, vocabulary_->Bytes(token), text))
      mask[token >> 5] &= ~(1u << (token & 31));
  };
  std::vector<std::string> escaped;
  for (const std::string& key : KeysBefore(text, open)) {
    const bool is_plain = std::all_of(key.begin(), key.end(), [](char c) {
      return c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '/';
    });
    if (!is_plain) escaped.push_back(key);
    // A plain key has one spelling.
    if (!is_plain || !key.starts_with(written)) continue;
    const auto [begin, end] = vocabulary_->WithPrefix(key.substr(written.size()) + "\"");
    for (size_t at = begin; at < end; at++) try_again(vocabulary_->SortedToken(at));
  }
  if (escaped.empty()) return;
  // Of other keys, every token that ends one is read.
  for (uint32_t token : vocabulary_->quote_tokens()) {
    if (!((mask[token >> 5] >> (token & 31)) & 1)) continue;
    const std::string_view bytes = vocabulary_->Bytes(token);
    JsonError error;
    const std::string whole = "\"" + written + std::string(bytes);
    size_t close = 1;
    while (close < whole.size() && whole[close] != '"') close += whole[close] == '\\' ? 2 : 1;
    if (close >= whole.size()) continue;
    const std::string key = ParseJson(std::string_view(whole).substr(0, close + 1), &error).text;
    if (std::find(escaped.begin(), escaped.end(), key) != escaped.end()) try_again(token);
  }
}

bool Constraint::FillMask(StateId state, std::string& text, uint32_t* mask) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t words = vocabulary_->mask_words();
  Mask fresh;
  Mask* found = states_[state].mask.get();
  if (!found) {
    const uint64_t assumptions = grammar_->assumptions();
    grammar_->AssumeNewKeysBefore(text.size());
    ComputeMask(state, text, &fresh);
    fresh.assumes_new_key = assumptions != grammar_->assumptions();
    grammar_->AssumeNewKeysBefore(0);
    found = &fresh;
    const size_t cost = fresh.uncertain.size() + (fresh.tokens.size() > kDenseTokens ? words : fresh.tokens.size());
    if (mask_memo_words_ + cost < kMaskMemoWords) {
      mask_memo_words_ += cost + 32;
      if (fresh.tokens.size() > kDenseTokens) {
        fresh.dense.assign(vocabulary_->SliceUnion(fresh.slices), vocabulary_->SliceUnion(fresh.slices) + words);
        for (uint32_t token : fresh.tokens) fresh.dense[token >> 5] |= 1u << (token & 31);
        fresh.tokens = {};
      }
      states_[state].mask = std::make_unique<Mask>(std::move(fresh));
      found = states_[state].mask.get();
    }
  }
  if (!found->dense.empty()) {
    std::memcpy(mask, found->dense.data(), words * 4);
  } else if (found->slices) {
    std::memcpy(mask, vocabulary_->SliceUnion(found->slices), words * 4);
  } else {
    std::memset(mask, 0, words * 4);
  }
  for (uint32_t token : found->tokens) mask[token >> 5] |= 1u << (token & 31);
  std::vector<uint32_t> tokens;
  for (const auto& [slice, node] : found->uncertain)
    Walk(vocabulary_->slices()[slice], node, state, text, &tokens, nullptr);
  for (uint32_t token : tokens) mask[token >> 5] |= 1u << (token & 31);
  if (found->assumes_new_key) RemoveRepeatedKeys(states_[state].configs, text, mask);
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

std::string Constraint::ForcedBytes(StateId state, std::string text, size_t limit, bool* ends) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Config> current = states_[state].configs, following;
  std::string forced;
  while (forced.size() < limit && !current.empty()) {
    ByteSet first;
    *ends = current.size() == 1 && current[0].node == kEpsilon;
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
