// Values of any type, and the gaps between tokens.
#include "json-schema/rules.h"

#include "base/spec-error.h"
#include "regex/parse.h"

namespace onpolicy::grammar {

// A line break may bring this many blanks of indentation.
static constexpr uint32_t kMaxIndent = 160;
// So many blanks may stand between tagged parameters.
static constexpr uint32_t kMaxTagBlanks = 20;

static ByteSet Blanks() {
  ByteSet blanks;
  for (char c : {' ', '\t', '\n', '\r'}) blanks.Add(static_cast<uint8_t>(c));
  return blanks;
}

SchemaRules::SchemaRules(Grammar& grammar, JsonValue schema, const SchemaOptions& options)
    : grammar_(grammar), compiler_(grammar.regex(), std::move(schema), options), shapes_(compiler_), tags_(options.tags) {
  RegexPool& pool = grammar.regex();
  if (options.whitespace_pattern) {
    CharEncoder plain(pool, TextForm::kPlain);
    ParseError error;
    gap_ = ParseRegex(*options.whitespace_pattern, {}, plain, &error);
    if (!error.ok())
      throw SpecError(error.unsupported ? "UNSUPPORTED" : "INVALID_REQUEST", "whitespace_pattern",
                        error.message + " at offset " + std::to_string(error.position));
    const NodeId blanks = pool.Repeat(pool.Bytes(Blanks()), 0, kUnlimited);
    if (pool.IsLive(pool.And({gap_, pool.Not(blanks)})))
      throw SpecError("INVALID_REQUEST", "whitespace_pattern", "matches text that is not JSON white space");
  } else if (options.max_blanks) {
    gap_ = pool.Repeat(pool.Bytes(Blanks()), 0, *options.max_blanks);
  } else if (options.any_whitespace) {
    // One blank, or a line break with its indentation: bounded, so that generation cannot loop in blanks.
    ByteSet blank;
    blank.Add(' ');
    blank.Add('\t');
    const NodeId line = pool.Concat(pool.Optional(pool.Literal("\r")), pool.Literal("\n"));
    gap_ = pool.Optional(pool.Alternate(
        {pool.Bytes(blank), pool.Concat(line, pool.Repeat(pool.Bytes(blank), 0, kMaxIndent))}));
  }
  tag_gap_ = pool.Repeat(pool.Bytes(Blanks()), 0, options.max_blanks.value_or(kMaxTagBlanks));
  if (tags_) plain_ = MakePlainAutomaton(pool);
  open_object_ = pool.Concat(pool.Literal("{"), gap_);
  open_array_ = pool.Concat(pool.Literal("["), gap_);
  comma_ = pool.Concat({gap_, pool.Literal(","), gap_});
  bare_comma_ = pool.Concat(gap_, pool.Literal(","));
  close_object_ = pool.Concat(gap_, pool.Literal("}"));
  close_array_ = pool.Concat(gap_, pool.Literal("]"));
  close_empty_object_ = pool.Literal("}");
  close_empty_array_ = pool.Literal("]");
  colon_ = pool.Concat({gap_, pool.Literal(":"), gap_});
  key_end_ = pool.Concat(pool.Literal("\""), colon_);
}

Symbol SchemaRules::Root() {
  const FormulaId root = compiler_.Compile();
  if (shapes_.IsEmpty(root)) throw SpecError("INVALID_REQUEST", "#", "no value satisfies this schema");
  shapes_.Explore(root);
  if (grammar_.regex().exhausted())
    throw SpecError("UNSUPPORTED", "#", "the schema's patterns are too complex to enforce together");
  return tags_ ? TaggedRoot(root) : Value(root);
}

Symbol SchemaRules::Value(FormulaId formula, uint32_t excluded) {
  const auto key = std::make_pair(formula, excluded);
  auto it = values_.find(key);
  if (it != values_.end()) return it->second;
  const Symbol symbol = grammar_.Rule([this, formula, excluded](Grammar&) { return ValueProductions(formula, excluded); });
  values_.emplace(key, symbol);
  return symbol;
}

// Whether an array or object of this shape could be opened but never closed.
bool SchemaRules::IsBodyEmpty(const Shape& shape, uint32_t excluded) {
  if (excluded == 0 && shape.some.empty() && !shape.unique && shape.min == 0 && shape.names.empty()) return false;
  const Symbol body = shape.type == kArrayType ? ArrayBody(shape, excluded) : ObjectBody(shape, excluded);
  return grammar_.IsEmptyRule(body);
}

std::vector<SequenceId> SchemaRules::ValueProductions(FormulaId formula, uint32_t excluded) {
  RegexPool& pool = grammar_.regex();
  std::vector<JsonValue> arrays, objects;
  for (const JsonValue& value : excluded_sets_[excluded]) (value.IsArray() ? arrays : objects).push_back(value);
  const uint32_t excluded_arrays = Exclude(std::move(arrays)), excluded_objects = Exclude(std::move(objects));
  std::vector<NodeId> scalars;
  std::vector<SequenceId> result;
  for (const Shape& shape : std::vector<Shape>(shapes_.Of(formula))) {
    if (shapes_.IsShapeEmpty(shape)) continue;
    switch (shape.type) {
      case kNullType:
        scalars.push_back(pool.Literal("null"));
        break;
      case kBoolType:
        if (shape.bools & 1) scalars.push_back(pool.Literal("false"));
        if (shape.bools & 2) scalars.push_back(pool.Literal("true"));
        break;
      case kNumberType:
        scalars.push_back(shape.text == kAnyText ? compiler_.values().numbers().Any() : shape.text);
        break;
      case kStringType:
        // Every restriction of strings is a language of JSON text already.
        scalars.push_back(pool.Concat({pool.Literal("\""),
                                       shape.text == kAnyText ? compiler_.values().free_text().AnyText() : shape.text,
                                       pool.Literal("\"")}));
        break;
      case kArrayType:
        if (IsBodyEmpty(shape, excluded_arrays)) break;
        result.push_back(grammar_.Sequence({grammar_.Terminal(open_array_), ArrayBody(shape, excluded_arrays)}));
        break;
      case kObjectType:
        if (IsBodyEmpty(shape, excluded_objects)) break;
        result.push_back(grammar_.Sequence({grammar_.Terminal(open_object_), ObjectBody(shape, excluded_objects)}));
        break;
    }
  }
  const NodeId scalar = pool.Alternate(std::move(scalars));
  if (pool.IsLive(scalar)) result.push_back(grammar_.Sequence({grammar_.Terminal(scalar)}));
  return result;
}

}  // namespace onpolicy::grammar
