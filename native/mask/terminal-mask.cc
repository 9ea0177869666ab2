// The table of terminal masks, and the tries of what follows their exits.
#include "mask/terminal-mask.h"

#include <utility>

#include "base/limits.h"

namespace onpolicy::grammar {

// Fewer places are walked one by one, and so are those that more nodes than these follow.
static constexpr size_t kManyPlaces = 4;
static constexpr size_t kManyNodes = 20000;

size_t TerminalMask::words() const {
  size_t total = 32 + tokens.size() + dense.size();
  for (const TerminalExit& exit : exits)
    total += 40 + exit.path.size() / 4 + 2 * exit.places.size() +
             (exit.rest ? exit.rest->trie.size() * (sizeof(TrieNode) / 4 + 1) + exit.rest->tokens.size() : 0);
  return total;
}

std::shared_ptr<const TerminalMask> TerminalMaskTable::Find(const Form& form) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto known = masks_.find(form); known != masks_.end()) return known->second;
  const auto older = older_masks_.find(form);
  if (older == older_masks_.end()) return nullptr;
  const std::shared_ptr<const TerminalMask> mask = older->second;
  older_masks_.erase(older);
  Keep(form, mask);
  return mask;
}

void TerminalMaskTable::Add(const Form& form, std::shared_ptr<const TerminalMask> mask) {
  std::lock_guard<std::mutex> lock(mutex_);
  Keep(form, mask);
}

// Half of the table is of the masks that were used last; when it is full, the other half is dropped.
void TerminalMaskTable::Keep(const Form& form, const std::shared_ptr<const TerminalMask>& mask) {
  if (words_ + mask->words() > limits::kTerminalMaskWords / 2) {
    older_masks_ = std::exchange(masks_, {});
    std::erase_if(rests_, [](const auto& rest) { return rest.second.expired(); });
    words_ = 0;
  }
  if (masks_.emplace(form, mask).second) words_ += mask->words();
}

std::shared_ptr<const TokenTrie> TerminalMaskTable::FindRest(const Form& places) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = rests_.find(places);
  return known == rests_.end() ? nullptr : known->second.lock();
}

void TerminalMaskTable::AddRest(const Form& places, const std::shared_ptr<const TokenTrie>& rest) {
  std::lock_guard<std::mutex> lock(mutex_);
  rests_[places] = rest;
}

namespace {

// A trie that grows: children are lists in the order of their bytes.
struct GrowingTrie {
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  struct Node {
    uint32_t child = kNone, next = kNone;
    TextClasses below = 0;
    uint8_t byte = 0;
    std::vector<uint32_t> tokens;
  };
  std::vector<Node> nodes{Node{}};
  std::vector<uint32_t> path, last;  // by depth: the node, and its child that was used last

  uint32_t Child(uint32_t parent, uint32_t after, uint8_t byte) {
    uint32_t before = after, at = after == kNone ? nodes[parent].child : nodes[after].next;
    if (after != kNone && nodes[after].byte == byte) return after;
    while (at != kNone && nodes[at].byte < byte) {
      before = at;
      at = nodes[at].next;
    }
    if (at != kNone && nodes[at].byte == byte) return at;
    const uint32_t made = static_cast<uint32_t>(nodes.size());
    nodes.emplace_back();
    nodes[made].byte = byte;
    nodes[made].next = at;
    (before == kNone ? nodes[parent].child : nodes[before].next) = made;
    return made;
  }

  // Adds the subtree of a node, which becomes the root.
  void Add(const TokenTrie& from, uint32_t root) {
    const uint32_t depth = from.trie[root].depth;
    path.assign(1, 0);
    last.assign(1, kNone);
    for (uint32_t at = root; at < from.trie[root].end; at++) {
      const TrieNode& node = from.trie[at];
      uint32_t here = 0;
      if (at > root) {
        const size_t parent = node.depth - depth - 1u;
        here = Child(path[parent], last[parent], node.byte);
        last[parent] = here;
        path.resize(parent + 1);
        last.resize(parent + 1);
        path.push_back(here);
        last.push_back(kNone);
      }
      nodes[here].below |= node.below;
      nodes[here].tokens.insert(nodes[here].tokens.end(), from.tokens.begin() + from.tokens_before[at],
                                from.tokens.begin() + from.tokens_before[at + 1]);
    }
  }

  TokenTrie Flat() const {
    TokenTrie result;
    struct Open {
      uint32_t node, place;
    };
    std::vector<Open> open;
    const auto enter = [&](uint32_t id) {
      TrieNode node;
      node.byte = nodes[id].byte;
      node.below = nodes[id].below;
      node.depth = static_cast<uint16_t>(open.size());
      result.tokens_before.push_back(static_cast<uint32_t>(result.tokens.size()));
      result.tokens.insert(result.tokens.end(), nodes[id].tokens.begin(), nodes[id].tokens.end());
      open.push_back({id, static_cast<uint32_t>(result.trie.size())});
      result.trie.push_back(node);
    };
    for (uint32_t next = 0; next != kNone;) {
      enter(next);
      next = nodes[next].child;
      while (next == kNone && !open.empty()) {
        result.trie[open.back().place].end = static_cast<uint32_t>(result.trie.size());
        next = nodes[open.back().node].next;
        open.pop_back();
      }
    }
    result.tokens_before.push_back(static_cast<uint32_t>(result.tokens.size()));
    result.ListChildren();
    return result;
  }
};

}  // namespace

void MergePlaces(const Vocabulary& vocabulary, TerminalExit* exit) {
  for (const TriePlace& place : exit->places)
    exit->nodes += vocabulary.slices()[place.slice].trie[place.node].end - place.node - 1;
  if (exit->places.size() < kManyPlaces || exit->nodes > kManyNodes) return;
  Form form = Form::Seed();
  for (const TriePlace& place : exit->places) form = form.With(PairKey(place.slice, place.node));
  exit->rest = vocabulary.terminal_masks().FindRest(form);
  if (exit->rest) return;
  GrowingTrie trie;
  for (const TriePlace& place : exit->places) trie.Add(vocabulary.slices()[place.slice], place.node);
  exit->rest = std::make_shared<const TokenTrie>(trie.Flat());
  vocabulary.terminal_masks().AddRest(form, exit->rest);
}

}  // namespace onpolicy::grammar
