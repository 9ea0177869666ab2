// What a caller may ask of the texts that a schema describes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "json-schema/tag-style.h"

namespace onpolicy::grammar {

struct SchemaOptions {
  bool any_whitespace = true;                     // false: compact JSON
  std::optional<std::string> whitespace_pattern;  // stands at every gap between JSON tokens
  bool disable_additional_properties = false;
  bool refuse_unknown = false;         // unknown formats are errors instead of warnings
  bool any_order = false;              // properties in any order, everywhere
  std::optional<uint32_t> max_blanks;  // the most white space between JSON tokens, of any kind
  const TagStyle* tags = nullptr;      // the root's members are tagged parameters in this style
};

}  // namespace onpolicy::grammar
