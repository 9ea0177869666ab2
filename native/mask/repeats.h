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

// The strings of a growing text, as far as tokens contain them: each part of the text is read once.
class SeenStrings {
 public:
  // Reads what `text` has gained since the last call, or since it was cut.
  void Read(std::string_view text, const QuotedTokens& quoted);
  // The text has lost what came after so many bytes.
  void Cut(size_t size);
  // Whether every string has one spelling, which is the plain one where there is such.
  bool is_plain() const { return escape_end_ == 0; }
  // Of strings that some token of kind kStrings holds, in the order of their first ends.
  const std::vector<size_t>& hashes() const { return hashes_; }

 private:
  size_t read_ = 0;            // bytes
  size_t escape_end_ = 0;      // of the first escape that could be spelled plainly; 0: none
  std::vector<size_t> hashes_;
  std::vector<size_t> ends_;   // of the first place of each
};

class RepeatCheck {
 public:
  // What a cached mask stores of the tokens that rest on an assumption.
  struct Tokens {
    bool end_open_key = false;      // some end the key that is being written
    bool has_keys = false;          // some of kind kKey
    std::vector<uint32_t> strings;  // of kind kStrings
    std::vector<uint32_t> unsure;   // of kind kUnsure
    std::vector<ItemToken> items;   // in which an item ends or begins
    std::vector<const KeyNames*> names;  // keys that are none of the assumed ones
    bool IsEmpty() const { return !end_open_key && !has_keys && strings.empty() && unsure.empty() && items.empty(); }
    size_t words() const { return strings.size() + unsure.size() + 2 * (items.size() + names.size()); }
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
  // Takes out of the mask what repeats a key or an item; `seen` reads the text.
  void Remove(const Tokens& tokens, SeenStrings* seen, const Place& place);

 private:
  // Tokens that hold one of some keys as a whole, each once.
  struct NameTokens {
    std::vector<uint32_t> keys, strings;  // of kind kKey, and of kind kStrings
    std::vector<std::string> escaped;     // keys with several spellings
  };

  const NameTokens& TokensOf(const KeyNames* names);
  void RemoveItems(const std::vector<ItemToken>& items, const Place& place);
  void RemoveKeys(const Tokens& tokens, SeenStrings* seen, const Place& place);
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
