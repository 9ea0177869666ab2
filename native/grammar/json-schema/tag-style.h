// Styles in which families of models write the arguments of a tool call as separate parameters: one row per style.
#pragma once
#include <string>
#include <string_view>

#include "grammar/regex/pool.h"

namespace onpolicy::grammar {

struct TagStyle {
  // Attribute next to the key, before the value.
  enum Attribute {
    kNoAttribute,
    kStringFlag,  // "true" if the value is a string, else "false"
    kKind,        // "raw", "json", "dict" or "list"; the last two contain parameters
    kTypeName,    // the JSON type; integers are numbers
    kJson,        // no attribute: every value is JSON
    kQuoted,      // no attribute: texts are between two of `value_end`, other values are JSON
  };
  std::string_view name;
  std::string_view open;       // up to the key
  std::string_view open_item;  // opening of a list item, up to the attribute
  std::string_view key_end;
  Attribute attribute;
  std::string_view value_begin;  // after the attribute
  bool value_apart;              // blanks may stand before `value_begin`
  std::string_view value_end;
  bool line_breaks;  // a line break at either end of a text is not part of it
  bool escapes_keys;
  std::string_view separator;  // between two parameters, whose keys are words; empty: separate tags with blanks between
};

// Returns the style of this name, or null.
const TagStyle* FindTagStyle(std::string_view name);
// Writes a key in the style. Returns false if the style cannot express it.
bool WriteTagKey(const TagStyle& style, std::string_view key, std::string* written);
// Returns the keys that a style can write unchanged.
NodeId PlainTagKeys(const TagStyle& style, RegexPool& pool);
// Makes an automaton that reads unescaped texts for an expression about the inside of a JSON string. Its states are those of the
// expression, which must contain all spellings of a text, or none.
Automaton* MakePlainAutomaton(RegexPool& pool);

}  // namespace onpolicy::grammar
