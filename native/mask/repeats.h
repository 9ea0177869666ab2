// Tokens of a mask that rest on the assumption that a key or an item is new -> the mask without those that repeat one.
// Keys are looked up by their strings, in the text and in the tokens; items are compared with the one before the comma.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mask/mask-walk.h"
#include "mask/quoted-tokens.h"

namespace onpolicy::grammar {

class RepeatCheck {
 public:
  // What a cached mask stores of the tokens that rest on an assumption.
  struct Tokens {
    bool end_open_key = false;      // some end the key that is being written
    bool has_keys = false;          // some of kind kKey
    std::vector<uint32_t> unsure;   // of kind kUnsure
    std::vector<ItemToken> items;   // in which an item ends or begins
    std::vector<const KeyNames*> names;  // keys that are none of the assumed ones
    bool IsEmpty() const { return !end_open_key && !has_keys && unsure.empty() && items.empty(); }
    size_t words() const { return unsure.size() + 2 * (items.size() + names.size()); }
  };
  // A mask, and where it stands.
  struct Place {
    StateId state;
    std::string& text;  // restored after each look
    uint32_t* mask;
  };

  RepeatCheck(const Vocabulary& vocabulary, StateTable& states) : vocabulary_(vocabulary), states_(states) {}

  // The tokens that a walk has found.
  Tokens Sort(const MaskWalk& walk) const;
  // Takes out of the mask what repeats a key or an item.
  void Remove(const Tokens& tokens, const Place& place);

 private:
  // Tokens that hold one of some keys as a whole, each once.
  struct NameTokens {
    std::vector<uint32_t> keys;        // of kind kKey
    std::vector<std::string> escaped;  // keys with several spellings
  };

  const NameTokens& TokensOf(const KeyNames* names);
  void RemoveItems(const std::vector<ItemToken>& items, const Place& place);
  void RemoveKeys(const Tokens& tokens, const Place& place);
  void RemoveEndsOfKey(const std::vector<const KeyNames*>& names, size_t open, const Place& place);
  void RemoveEscapedEnds(const std::string& written, const std::vector<std::string>& keys, const Place& place);
  void RemoveEnds(const std::string& rest, const Place& place);
  void RemoveIfDead(uint32_t token, const Place& place);
  StateId Follow(StateId state, std::string_view bytes, std::string& text);

  const Vocabulary& vocabulary_;
  StateTable& states_;
  std::unordered_map<const KeyNames*, NameTokens> name_tokens_;
};

}  // namespace onpolicy::grammar
