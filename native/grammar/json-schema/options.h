// Options for the texts that a schema describes.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "grammar/json-schema/tag-style.h"

namespace onpolicy::grammar {

struct SchemaOptions {
  bool any_whitespace = true;                     // false: compact JSON
  std::optional<std::string> whitespace_pattern;  // used between all JSON tokens
  bool disable_additional_properties = false;
  bool refuse_unknown = false;         // a keyword that cannot be enforced as written is an error instead of a warning
  bool reads_any_of = false;           // read every `oneOf` as `anyOf`
  bool any_order = false;              // properties in any order, everywhere
  std::optional<uint32_t> max_blanks;  // maximum white space between JSON tokens
  std::map<std::string, std::string> schemas;  // by URI: texts that references may lead to
  const TagStyle* tags = nullptr;      // the root's members are parameters in this style
  std::optional<uint32_t> quote_token;  // the token of the style's quote; absent: its bytes
};

}  // namespace onpolicy::grammar
