// Punctuation from options, and the table of shapes.
#include "grammar/json-schema/rule-context.h"

#include "base/spec-error.h"
#include "grammar/regex/parse.h"

namespace onpolicy::grammar {

// Maximum blanks of indentation after a line break.
static constexpr uint32_t kMaxIndent = 320;
// Maximum blanks between tagged parameters.
static constexpr uint32_t kMaxTagBlanks = 20;

static NodeId GapOf(RegexPool& pool, const SchemaOptions& options) {
  const NodeId blank = pool.Bytes(ByteSet::Of(" \t\n\r"));
  if (options.whitespace_pattern) {
    CharEncoder plain(pool, TextForm::kPlain);
    NodeId gap;
    try {
      gap = ParseRegex(*options.whitespace_pattern, {}, plain);
    } catch (const ParseError& error) {
      throw SpecError(error.code(), "whitespace_pattern", error.message + " at offset " + std::to_string(error.position), error.position);
    }
    if (pool.IsLive(pool.And({gap, pool.Not(pool.Repeat(blank, 0, kUnlimited))})))
      throw SpecError("INVALID_REQUEST", "whitespace_pattern", "matches text that is not JSON white space");
    return gap;
  }
  if (options.max_blanks) return pool.Repeat(blank, 0, *options.max_blanks);
  if (!options.any_whitespace) return kEpsilon;
  // One blank, or a line break with its indentation. Limited, so that generation cannot loop in blanks.
  const NodeId space = pool.Bytes(ByteSet::Of(" \t"));
  const NodeId line = pool.Concat(pool.Optional(pool.Literal("\r")), pool.Literal("\n"));
  return pool.Optional(pool.Alternate({space, pool.Concat(line, pool.Repeat(space, 0, kMaxIndent))}));
}

Punctuation::Punctuation(RegexPool& pool, const SchemaOptions& options)
    : gap(GapOf(pool, options)),
      tag_gap(pool.Repeat(pool.Bytes(ByteSet::Of(" \t\n\r")), 0, options.max_blanks.value_or(kMaxTagBlanks))),
      quote(pool.Literal("\"")),
      colon(pool.Concat({gap, pool.Literal(":"), gap})),
      key_end(pool.Concat(quote, colon)),
      comma(pool.Concat({gap, pool.Literal(","), gap})),
      bare_comma(pool.Concat(gap, pool.Literal(","))),
      open_object(pool.Concat(pool.Literal("{"), gap)),
      close_object(pool.Concat(gap, pool.Literal("}"))),
      close_empty_object(pool.Literal("}")),
      open_array(pool.Concat(pool.Literal("["), gap)),
      close_array(pool.Concat(gap, pool.Literal("]"))),
      close_empty_array(pool.Literal("]")) {}

size_t SpecKey::Hash::operator()(const SpecKey& key) const {
  uint64_t hash = MixBits(key.shape.min) ^ key.shape.max;
  for (const std::vector<uint32_t>* atoms : {&key.shape.members, &key.shape.some, &key.shape.items, &key.shape.names})
    for (uint32_t atom : *atoms) hash = MixBits(hash ^ atom);
  return MixBits(hash ^ key.shape.required.size());
}

}  // namespace onpolicy::grammar
