// Tokens of a mask that depend on the assumption that a key or an item is new -> the mask without the tokens that repeat one. Keys are
// looked up by their strings, in the text and in the tokens; items are compared with the one before the comma.
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/mask/mask-walk.h"
#include "grammar/mask/quoted-tokens.h"

namespace onpolicy::grammar {

class RepeatCheck {
 public:
  // Part of a cached mask: the tokens that depend on an assumption.
  struct Tokens {
    bool end_open_key = false;      // some end the key that is being written
    bool has_keys = false;          // some of kind kKey
    std::vector<uint32_t> unsure;   // tokens of kind kUnsure
    std::vector<ItemToken> items;   // in which an item ends or begins
    std::vector<const KeyNames*> names;  // key lists that the assumed keys must not be in
    bool IsEmpty() const { return !end_open_key && !has_keys && unsure.empty() && items.empty(); }
    size_t words() const { return unsure.size() + 2 * (items.size() + names.size()); }
  };
  // A mask and its position.
  struct Place {
    StateId state;
    MatchedText& text;  // restored after each call
    uint32_t* mask;
  };

  RepeatCheck(const Vocabulary& vocabulary, StateTable& states) : vocabulary_(vocabulary), states_(states) {}

  // Returns the tokens that a walk has found, by kind.
  Tokens Sort(const MaskWalk& walk) const;
  // Removes the tokens that repeat a key or an item from the mask.
  void Remove(const Tokens& tokens, const Place& place);

 private:
  // Tokens that contain one of some keys as a whole, each once.
  struct NameTokens {
    std::vector<uint32_t> keys;        // tokens of kind kKey
    std::vector<std::string> escaped;  // keys with several spellings
  };

  const NameTokens& TokensOf(const KeyNames* names);
  void RemoveItems(const std::vector<ItemToken>& items, const Place& place);
  void RemoveKeys(const Tokens& tokens, const Place& place);
  void RemoveKeysSoFar(const Place& place);
  void RemoveEndsOfKey(const std::vector<const KeyNames*>& names, size_t open, const Place& place);
  template <typename Entry, typename KeyOf, typename Has>
  void AddEnds(Entry from, Entry last, const std::string& written, const KeyOf& key_of, const Has& has_key,
               std::set<std::string>* ends) const;
  template <typename Has>
  std::vector<uint32_t> EscapedEnds(const std::string& written, const Has& has_key, const Place& place) const;
  void RemoveEnds(std::string_view rest, const Place& place);
  void RemoveIfDead(uint32_t token, const Place& place);
  StateId Follow(StateId state, std::string_view bytes, MatchedText& text);

  const Vocabulary& vocabulary_;
  StateTable& states_;
  std::unordered_map<const KeyNames*, NameTokens> name_tokens_;
};

}  // namespace onpolicy::grammar
