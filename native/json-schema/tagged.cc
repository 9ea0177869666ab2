// Tagged parameters: the members of an object as tags whose values are texts as they are, or JSON.
#include <algorithm>
#include <set>

#include "base/spec-error.h"
#include "json-schema/rules.h"
#include "pushdown/text-tools.h"

namespace onpolicy::grammar {

// The parameters of the root, which must be an object.
Symbol SchemaRules::TaggedRoot(FormulaId root) {
  const FormulaId object = compiler_.formulas().And({root, compiler_.formulas().Types(kObjectType)});
  if (shapes_.IsEmpty(object))
    throw SpecError("INVALID_REQUEST", "#", "the style '" + std::string(tags_->name) + "' needs the schema of an object");
  for (const Shape& shape : std::vector<Shape>(shapes_.Of(object))) {
    std::set<std::string> keys = shape.required;
    for (uint32_t atom : shape.members)
      for (const auto& [key, value] : compiler_.formulas().atom(atom).properties) keys.insert(key);
    for (const std::string& key : keys)
      if (TaggedKey(key) == kNothing)
        throw SpecError("UNSUPPORTED", "#",
                          "the style '" + std::string(tags_->name) + "' cannot write the property '" + key + "'");
  }
  return grammar_.Rule([this, object](Grammar& grammar) {
    std::vector<SequenceId> result;
    for (const Shape& shape : std::vector<Shape>(shapes_.Of(object)))
      if (!shapes_.IsShapeEmpty(shape)) result.push_back(grammar.Sequence({ObjectBody(shape, 0, true)}));
    return result;
  });
}

// A known key up to its value or attribute; nothing where the style cannot write it.
NodeId SchemaRules::TaggedKey(const std::string& key) {
  RegexPool& pool = grammar_.regex();
  std::string written;
  if (!WriteTagKey(*tags_, key, &written)) return kNothing;
  return pool.Concat({tag_gap_, pool.Literal(std::string(tags_->open) + written + std::string(tags_->key_end))});
}

// Further keys, given as texts inside of JSON strings.
NodeId SchemaRules::TaggedKeys(NodeId keys) {
  RegexPool& pool = grammar_.regex();
  const NodeId plain = pool.And({pool.Leaf(plain_, keys), PlainTagKeys(pool)});
  if (!pool.IsLive(plain)) return kNothing;
  return pool.Concat({tag_gap_, pool.Literal(tags_->open), plain, pool.Literal(tags_->key_end)});
}

// After a further key: it is read back, and joins those that must not come again.
Symbol SchemaRules::AfterTaggedKey(FormulaId formula, const ObjectState& next) {
  const auto found = after_tagged_key_.find({formula, next});
  if (found != after_tagged_key_.end()) return found->second;
  const Symbol symbol = grammar_.Deferred([this, formula, next](Grammar& grammar, std::string_view text, Symbol* result) {
    grammar.NoteTextRead();
    text.remove_suffix(tags_->key_end.size());
    const size_t start = text.rfind(tags_->open);
    if (start == std::string_view::npos) return false;
    std::vector<std::string> keys = extra_sets_[next.extra_set];
    const std::string key(text.substr(start + tags_->open.size()));
    const auto place = std::lower_bound(keys.begin(), keys.end(), key);
    if (place != keys.end() && *place == key) return false;
    keys.insert(place, key);
    const auto [set, is_new] = extra_set_index_.emplace(keys, static_cast<uint32_t>(extra_sets_.size()));
    if (is_new) extra_sets_.push_back(std::move(keys));
    ObjectState after = next;
    after.extra_set = set->second;
    auto member = tagged_members_.find({formula, after});
    if (member == tagged_members_.end())
      member = tagged_members_.emplace(std::make_pair(formula, after), grammar.Rule([this, formula, after](Grammar& inner) {
        return std::vector<SequenceId>{inner.Sequence({TaggedValue(formula), Object(after)})};
      })).first;
    *result = member->second;
    return true;
  });
  after_tagged_key_[{formula, next}] = symbol;
  return symbol;
}

Symbol SchemaRules::TaggedValue(FormulaId formula) {
  const auto found = tagged_values_.find(formula);
  if (found != tagged_values_.end()) return found->second;
  return tagged_values_[formula] = grammar_.Rule([this, formula](Grammar&) { return TaggedProductions(formula); });
}

// The strings of a formula as they are, up to where the value ends.
NodeId SchemaRules::TaggedTexts(FormulaId formula) {
  RegexPool& pool = grammar_.regex();
  std::vector<NodeId> options;
  for (const Shape& shape : std::vector<Shape>(shapes_.Of(formula))) {
    if (shape.type != kStringType || shapes_.IsShapeEmpty(shape)) continue;
    options.push_back(shape.text == kAnyText ? kAnyText : pool.Leaf(plain_, shape.text));
  }
  if (options.empty()) return kNothing;
  NodeId texts = pool.Alternate(std::move(options));
  if (tags_->line_breaks && texts != kAnyText) {
    const NodeId line_break = pool.Optional(pool.Literal("\n"));
    texts = pool.Concat({line_break, texts, line_break});
  }
  return pool.And({texts, TextWithout(pool, {std::string(tags_->value_end)})});
}

std::vector<SequenceId> SchemaRules::TaggedProductions(FormulaId formula) {
  RegexPool& pool = grammar_.regex();
  FormulaTable& formulas = compiler_.formulas();
  std::vector<SequenceId> result;
  const NodeId end = pool.Literal(tags_->value_end), gap_end = pool.Concat(tag_gap_, end);
  const NodeId texts = TaggedTexts(formula);
  const bool has_texts = pool.IsLive(texts);
  // What stands before the value when the attribute is `name`.
  const auto begin = [&](std::string_view name) {
    return pool.Concat({pool.Literal(name), tags_->value_apart ? tag_gap_ : kEpsilon, pool.Literal(tags_->value_begin)});
  };
  const auto of_types = [&](unsigned types) { return formulas.And({formula, formulas.Types(types)}); };
  const auto offer_texts = [&](NodeId before) {
    if (has_texts) result.push_back(grammar_.Sequence({grammar_.Terminal(pool.Concat({before, texts, end}))}));
  };
  const auto offer_json = [&](NodeId before, FormulaId values) {
    if (shapes_.IsEmpty(values)) return;
    result.push_back(grammar_.Sequence(
        {grammar_.Terminal(pool.Concat(before, tag_gap_)), Value(values), grammar_.Terminal(gap_end)}));
  };
  constexpr unsigned kScalars = kNullType | kBoolType | kNumberType;
  const FormulaId others = of_types(kAllTypes & ~kStringType);
  switch (tags_->attribute) {
    case TagStyle::kNoAttribute:
      offer_texts(begin(""));
      offer_json(begin(""), others);
      break;
    case TagStyle::kStringFlag: {
      // Where the schema decides alone, models may write either.
      const NodeId either = pool.Alternate({begin("true"), begin("false")});
      const bool has_both = has_texts && !shapes_.IsEmpty(others);
      offer_texts(has_both ? begin("true") : either);
      offer_json(has_both ? begin("false") : either, others);
      break;
    }
    case TagStyle::kKind:
      offer_texts(begin("raw"));
      offer_json(begin("json"), of_types(kScalars));
      for (const Shape& shape : std::vector<Shape>(shapes_.Of(of_types(kArrayType | kObjectType)))) {
        if (shapes_.IsShapeEmpty(shape)) continue;
        const bool is_array = shape.type == kArrayType;
        // Items that must differ are compared as JSON.
        if (is_array && shape.unique) {
          offer_json(begin("json"), of_types(kArrayType));
          continue;
        }
        const Symbol body = is_array ? ArrayBody(shape, 0, true) : ObjectBody(shape, 0, true);
        result.push_back(grammar_.Sequence(
            {grammar_.Terminal(begin(is_array ? "list" : "dict")), body, grammar_.Terminal(end)}));
      }
      break;
    case TagStyle::kTypeName: {
      offer_texts(begin("string"));
      const std::pair<const char*, unsigned> types[] = {{"null", kNullType}, {"boolean", kBoolType}, {"number", kNumberType},
                                                        {"array", kArrayType}, {"object", kObjectType}};
      for (const auto& [name, type] : types) offer_json(begin(name), of_types(type));
      if (formula == kTrueFormula)
        result.push_back(grammar_.Sequence({grammar_.Terminal(
            pool.Concat({begin("integer"), tag_gap_, compiler_.values().numbers().Integer(), gap_end}))}));
      break;
    }
  }
  return result;
}

}  // namespace onpolicy::grammar
