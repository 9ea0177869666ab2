// The table of terminal masks, and the tries behind their exits.
#include "grammar/mask/terminal-mask.h"

#include <utility>

#include "base/limits.h"

namespace onpolicy::grammar {

// Limits for merging: fewer places are walked one by one, and so are places with more following nodes than this.
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

// Half of the table holds the most recently used masks. When it is full, the other half is dropped.
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

void MergePlaces(const Vocabulary& vocabulary, TerminalExit* exit) {
  size_t nodes = 0;  // below the places
  for (const TriePlace& place : exit->places) nodes += vocabulary.slices()[place.slice].trie[place.node].end - place.node - 1;
  if (exit->places.size() < kManyPlaces || nodes > kManyNodes) return;
  Form form = Form::Seed();
  for (const TriePlace& place : exit->places) form = form.With(PairKey(place.slice, place.node));
  exit->rest = vocabulary.terminal_masks().FindRest(form);
  if (exit->rest) return;
  GrowingTrie trie;
  for (const TriePlace& place : exit->places) trie.AddSubtree(vocabulary.slices()[place.slice], place.node);
  exit->rest = std::make_shared<const TokenTrie>(trie.Flat());
  vocabulary.terminal_masks().AddRest(form, exit->rest);
}

}  // namespace onpolicy::grammar
