// How families of models write the arguments of a tool call as parameters of their own: one row per style.
#pragma once
#include <string>
#include <string_view>

#include "regex/pool.h"

namespace onpolicy::grammar {

struct TagStyle {
  // What stands between the key and the value, next to the key.
  enum Attribute {
    kNoAttribute,
    kStringFlag,  // whether the value is a string: "true" or "false"
    kKind,        // "raw", "json", "dict" or "list"; the last two hold parameters of their own
    kTypeName,    // the JSON type; integers are numbers
    kJson,        // nothing: every value is JSON
    kQuoted,      // nothing: texts stand between two of `value_end`, other values are JSON
  };
  std::string_view name;
  std::string_view open;       // up to the key
  std::string_view open_item;  // of a list: up to the attribute
  std::string_view key_end;
  Attribute attribute;
  std::string_view value_begin;  // after the attribute
  bool value_apart;              // blanks may stand before `value_begin`
  std::string_view value_end;
  bool line_breaks;  // a line break at either end of a text does not belong to it
  bool escapes_keys;
  std::string_view separator;  // between two parameters, whose keys are words; empty: tags of their own, with blanks between
};

// The style of this name, or null.
const TagStyle* FindTagStyle(std::string_view name);
// A key as the style writes it; false when it cannot be written.
bool WriteTagKey(const TagStyle& style, std::string_view key, std::string* written);
// Keys that a style can write as they are.
NodeId PlainTagKeys(const TagStyle& style, RegexPool& pool);
// Reads texts as they are where an expression is about the inside of a JSON string: its states are those of the
// expression, which must hold all spellings of a text, or none.
Automaton* MakePlainAutomaton(RegexPool& pool);

}  // namespace onpolicy::grammar
