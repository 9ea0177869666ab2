// The rules of each kind of attribute.
#include "grammar/json-schema/tagged-rules.h"

#include <set>

#include "base/spec-error.h"
#include "grammar/json-schema/rules.h"
#include "grammar/pushdown/text-tools.h"

namespace onpolicy::grammar {

TaggedRules::TaggedRules(RuleContext& context, SchemaRules& rules, const TagStyle& style)
    : context_(context), rules_(rules), style_(style), plain_(MakePlainAutomaton(context.pool)) {}

Symbol TaggedRules::Root(FormulaId root) {
  const std::string name = "the style '" + std::string(style_.name) + "' ";
  const FormulaId object = context_.formulas.And({root, context_.formulas.Types(kObjectType)});
  if (context_.shapes.IsEmpty(object)) throw SpecError("INVALID_REQUEST", "#", name + "needs the schema of an object");
  for (const Shape& shape : std::vector<Shape>(context_.shapes.Of(object)))
    for (const std::string& key : context_.parts.KnownKeys(shape))
      if (KnownKey(key, true) == kNothing) throw SpecError("UNSUPPORTED", "#", name + "cannot write the property '" + key + "'");
  return context_.grammar.Rule([this, object](Grammar& grammar) {
    std::vector<SequenceId> result;
    for (const Shape& shape : std::vector<Shape>(context_.shapes.Of(object)))
      if (!context_.shapes.IsShapeEmpty(shape)) result.push_back(grammar.Sequence({rules_.objects().Body(shape, 0, true)}));
    return result;
  });
}

NodeId TaggedRules::Before(bool is_first) {
  if (style_.separator.empty()) return context_.marks.tag_gap;
  return is_first ? kEpsilon : context_.pool.Literal(style_.separator);
}

NodeId TaggedRules::KnownKey(const std::string& key, bool is_first) {
  std::string written;
  if (!WriteTagKey(style_, key, &written)) return kNothing;
  RegexPool& pool = context_.pool;
  return pool.Concat({Before(is_first), pool.Literal(std::string(style_.open) + written + std::string(style_.key_end))});
}

NodeId TaggedRules::FurtherKeys(NodeId keys, bool is_first) {
  RegexPool& pool = context_.pool;
  const NodeId plain = pool.And({pool.Leaf(plain_, keys), PlainTagKeys(style_, pool)});
  if (!pool.IsLive(plain)) return kNothing;
  return pool.Concat({Before(is_first), pool.Literal(style_.open), plain, pool.Literal(style_.key_end)});
}

bool TaggedRules::FindKey(std::string_view text, std::string* key) const {
  text.remove_suffix(style_.key_end.size());
  if (!style_.separator.empty()) {
    *key = text.substr(text.find_last_of(style_.separator) + 1);  // keys are words and contain no part of the separator
    return true;
  }
  const size_t start = text.rfind(style_.open);
  if (start == std::string_view::npos) return false;
  *key = text.substr(start + style_.open.size());
  return true;
}

Symbol TaggedRules::Value(FormulaId formula) {
  if (style_.attribute == TagStyle::kJson) return rules_.Value(formula);
  return values_.Get(formula, [&] {
    return context_.grammar.Rule([this, formula](Grammar&) { return Productions(formula); });
  });
}

Symbol TaggedRules::Quote() {
  const std::optional<uint32_t> token = context_.compiler.options().quote_token;
  if (!token) return context_.grammar.Terminal(context_.pool.Literal(style_.value_end));
  TokenSet set;
  set.tokens = {*token};
  return context_.grammar.Tokens(std::move(set));
}

// Returns the strings of a formula unescaped, up to the end of the value.
NodeId TaggedRules::Texts(FormulaId formula) {
  RegexPool& pool = context_.pool;
  std::vector<NodeId> options;
  for (const Shape& shape : std::vector<Shape>(context_.shapes.Of(formula))) {
    if (shape.type != kStringType || context_.shapes.IsShapeEmpty(shape)) continue;
    options.push_back(shape.text == kAnyText ? kAnyText : pool.Leaf(plain_, shape.text));
  }
  if (options.empty()) return kNothing;
  NodeId texts = pool.Alternate(std::move(options));
  if (style_.line_breaks && texts != kAnyText) {
    const NodeId line_break = pool.Optional(pool.Literal("\n"));
    texts = pool.Concat({line_break, texts, line_break});
  }
  return pool.And({texts, TextWithout(pool, {std::string(style_.value_end)})});
}

// Builds the productions of one value: texts and JSON values, each behind its attribute.
class TaggedRules::ValueProductions {
 public:
  ValueProductions(TaggedRules& rules, FormulaId formula)
      : tagged_(rules), context_(rules.context_), style_(rules.style_), formula_(formula), texts_(rules.Texts(formula)),
        end_(context_.pool.Literal(style_.value_end)), gap_end_(context_.pool.Concat(context_.marks.tag_gap, end_)) {}

  bool has_texts() { return context_.pool.IsLive(texts_); }
  bool HasValues(unsigned types) { return !context_.shapes.IsEmpty(OfTypes(types)); }
  // Returns the text before the value if the attribute is `name`.
  NodeId Begin(std::string_view name) {
    RegexPool& pool = context_.pool;
    return pool.Concat({pool.Literal(name), style_.value_apart ? context_.marks.tag_gap : kEpsilon, pool.Literal(style_.value_begin)});
  }
  void AddTexts(NodeId before) {
    if (has_texts()) result_.push_back(context_.Sequence(context_.pool.Concat({before, texts_, end_})));
  }
  // Adds texts between two quotes, which may be tokens.
  void AddQuoted() {
    if (!has_texts()) return;
    RegexPool& pool = context_.pool;
    const Symbol quote = tagged_.Quote();
    const NodeId some = pool.And({texts_, pool.Not(kEpsilon)});
    if (pool.IsLive(some)) result_.push_back(context_.grammar.Sequence({quote, context_.grammar.Terminal(some), quote}));
    if (pool.IsNullable(texts_)) result_.push_back(context_.grammar.Sequence({quote, quote}));
  }
  void AddBare(unsigned types) {
    if (HasValues(types)) result_.push_back(context_.grammar.Sequence({tagged_.rules_.Value(OfTypes(types))}));
  }
  void AddJson(NodeId before, unsigned types) {
    if (!HasValues(types)) return;
    const Symbol value = tagged_.rules_.Value(OfTypes(types));
    result_.push_back(context_.Sequence(context_.pool.Concat(before, context_.marks.tag_gap),
                                        {value, context_.grammar.Terminal(gap_end_)}));
  }
  // Adds numbers without a fraction as a separate type.
  void AddIntegers(NodeId before) {
    result_.push_back(context_.Sequence(
        context_.pool.Concat({before, context_.marks.tag_gap, context_.values.numbers().Integer(), gap_end_})));
  }
  // Adds arrays and objects as nested parameters.
  void AddNested() {
    for (const Shape& shape : std::vector<Shape>(context_.shapes.Of(OfTypes(kArrayType | kObjectType)))) {
      if (context_.shapes.IsShapeEmpty(shape)) continue;
      const bool is_array = shape.type == kArrayType;
      // Items that must differ are written as JSON, so that they can be compared.
      if (is_array && shape.unique) {
        AddJson(Begin("json"), kArrayType);
        continue;
      }
      SchemaRules& rules = tagged_.rules_;
      const Symbol body = is_array ? rules.arrays().Body(shape, 0, true) : rules.objects().Body(shape, 0, true);
      result_.push_back(context_.Sequence(Begin(is_array ? "list" : "dict"), {body, context_.grammar.Terminal(end_)}));
    }
  }
  std::vector<SequenceId> Take() { return std::move(result_); }

 private:
  FormulaId OfTypes(unsigned types) { return context_.formulas.And({formula_, context_.formulas.Types(types)}); }

  TaggedRules& tagged_;
  RuleContext& context_;
  const TagStyle& style_;
  FormulaId formula_;
  NodeId texts_, end_, gap_end_;
  std::vector<SequenceId> result_;
};

std::vector<SequenceId> TaggedRules::Productions(FormulaId formula) {
  ValueProductions values(*this, formula);
  constexpr unsigned kOthers = kAllTypes & ~kStringType;
  switch (style_.attribute) {
    case TagStyle::kNoAttribute:
      values.AddTexts(values.Begin(""));
      values.AddJson(values.Begin(""), kOthers);
      break;
    case TagStyle::kJson:  // see Value
      break;
    case TagStyle::kQuoted:
      values.AddQuoted();
      values.AddBare(kOthers);
      break;
    case TagStyle::kStringFlag: {
      // If the schema allows only texts, or only other values, models may write either flag.
      const NodeId either = context_.pool.Alternate({values.Begin("true"), values.Begin("false")});
      const bool has_both = values.has_texts() && values.HasValues(kOthers);
      values.AddTexts(has_both ? values.Begin("true") : either);
      values.AddJson(has_both ? values.Begin("false") : either, kOthers);
      break;
    }
    case TagStyle::kKind:
      values.AddTexts(values.Begin("raw"));
      values.AddJson(values.Begin("json"), kNullType | kBoolType | kNumberType);
      values.AddNested();
      break;
    case TagStyle::kTypeName: {
      values.AddTexts(values.Begin("string"));
      const std::pair<const char*, unsigned> types[] = {{"null", kNullType}, {"boolean", kBoolType}, {"number", kNumberType},
                                                        {"array", kArrayType}, {"object", kObjectType}};
      for (const auto& [name, type] : types) values.AddJson(values.Begin(name), type);
      if (formula == kTrueFormula) values.AddIntegers(values.Begin("integer"));
      break;
    }
  }
  return values.Take();
}

}  // namespace onpolicy::grammar
