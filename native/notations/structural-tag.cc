// Structural tags, old form (`structures`, `triggers`) and new form (`format`) -> rules.
#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/spec-error.h"
#include "notations/front-ends.h"
#include "notations/grammar-text.h"
#include "pushdown/text-tools.h"
#include "regex/char-class.h"

namespace onpolicy::grammar {

namespace {

// White space between JSON tokens where a format asks for no limit.
constexpr uint32_t kMaxBlanks = 20;

class TagReader {
 public:
  explicit TagReader(FrontEnd& front)
      : front_(front), pool_(front.grammar.regex()), rules_(std::make_shared<RuleSet>(front.grammar)) {}

  Symbol Read(const JsonValue& root) {
    if (!root.IsObject()) Fail("", "must be an object");
    const JsonValue* type = root.Find("type");
    const JsonValue* format = root.Find("format");
    if (type ? !type->IsString() || type->text != "structural_tag" : !format)
      Fail("/type", "must be \"structural_tag\"");
    const uint32_t start = rules_->Add();
    RuleExpr body = format ? Format(*format, "/format", {}, 0) : Legacy(root);
    rules_->Define(start, std::move(body));
    return rules_->Compile(start);
  }

 private:
  using Words = std::vector<std::string>;

  [[noreturn]] void Fail(const std::string& pointer, const std::string& what) {
    throw SpecError("INVALID_REQUEST", "#" + pointer, what);
  }
  [[noreturn]] void Unsupported(const std::string& pointer, const std::string& what) {
    throw SpecError("UNSUPPORTED", "#" + pointer, what);
  }

  const JsonValue& Need(const JsonValue& format, const char* key, const std::string& pointer) {
    const JsonValue* value = format.Find(key);
    if (!value) Fail(pointer + "/" + key, "is missing");
    return *value;
  }
  const std::string& Text(const JsonValue& value, const std::string& pointer) {
    if (!value.IsString()) Fail(pointer, "must be a string");
    return value.text;
  }
  bool Flag(const JsonValue& format, const char* key, bool fallback, const std::string& pointer) {
    const JsonValue* value = format.Find(key);
    if (!value || value->type == JsonValue::kNull) return fallback;
    if (!value->IsBool()) Fail(pointer + "/" + key, "must be a boolean");
    return value->type == JsonValue::kTrue;
  }
  Words TextList(const JsonValue& format, const char* key, const std::string& pointer) {
    Words words;
    const JsonValue* value = format.Find(key);
    if (!value || value->type == JsonValue::kNull) return words;
    if (!value->IsArray()) Fail(pointer + "/" + key, "must be a list of strings");
    for (const JsonValue& item : value->items) {
      words.push_back(Text(item, pointer + "/" + key));
      if (words.back().empty()) Fail(pointer + "/" + key, "holds an empty string");
    }
    return words;
  }
  std::vector<JsonValue> List(const JsonValue& format, const char* key, const std::string& pointer) {
    const JsonValue& value = Need(format, key, pointer);
    if (!value.IsArray() || value.items.empty()) Fail(pointer + "/" + key, "must be a non-empty list");
    return value.items;
  }
  uint32_t Count(const JsonValue& value, const std::string& pointer) {
    Decimal decimal;
    if (!value.IsNumber() || !ParseDecimal(value.text, &decimal) || !decimal.IsInteger() || decimal.negative ||
        decimal.IntegerDigits().size() > 8)
      Fail(pointer, "must be a non-negative integer");
    return static_cast<uint32_t>(std::stoul(decimal.IntegerDigits()));
  }
  static Words Joined(Words a, const Words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  RuleExpr Literal(const std::string& text) { return RuleExpr::Text(pool_.Literal(text)); }

  // Free text until a trigger, then one of the structures that begin with it.
  RuleExpr Legacy(const JsonValue& root) {
    const std::vector<JsonValue> structures = List(root, "structures", "");
    const Words triggers = TextList(root, "triggers", "");
    if (triggers.empty()) Fail("/triggers", "must be a non-empty list");
    std::vector<TagParts> tags;
    for (size_t i = 0; i < structures.size(); i++) {
      const std::string pointer = "/structures/" + std::to_string(i);
      if (!structures[i].IsObject()) Fail(pointer, "must be an object");
      TagParts tag;
      tag.begin = Text(Need(structures[i], "begin", pointer), pointer + "/begin");
      const JsonValue* schema = structures[i].Find("schema");
      JsonValue any;
      any.type = JsonValue::kTrue;
      std::vector<RuleExpr> rest{Schema(schema ? *schema : any, pointer + "/schema", front_.schema),
                                 Literal(Text(Need(structures[i], "end", pointer), pointer + "/end"))};
      tag.rest = RuleExpr::Sequence(std::move(rest));
      tag.pointer = pointer;
      tags.push_back(std::move(tag));
    }
    return Triggered(triggers, tags, {}, false, false, "");
  }

  struct TagParts {
    std::string begin;
    RuleExpr rest;
    std::string pointer;
  };

  RuleExpr Triggered(const Words& triggers, const std::vector<TagParts>& tags, const Words& excludes, bool at_least_one,
                     bool stop_after_first, const std::string& pointer) {
    for (size_t i = 0; i < triggers.size(); i++)
      for (size_t k = 0; k < triggers.size(); k++)
        if (i != k && triggers[k].starts_with(triggers[i]))
          Fail(pointer + "/triggers/" + std::to_string(i), "is the beginning of another trigger");
    std::vector<Trigger> dispatch;
    std::vector<bool> used(tags.size(), false);
    for (const std::string& trigger : triggers) {
      std::vector<RuleExpr> options;
      for (size_t i = 0; i < tags.size(); i++) {
        if (!tags[i].begin.starts_with(trigger)) continue;
        used[i] = true;
        options.push_back(RuleExpr::Sequence({Literal(tags[i].begin.substr(trigger.size())), tags[i].rest}));
      }
      if (options.empty()) Fail(pointer + "/triggers", "no tag begins with the trigger '" + trigger + "'");
      dispatch.push_back({trigger, RuleExpr::Choice(std::move(options))});
    }
    for (size_t i = 0; i < tags.size(); i++)
      if (!used[i]) Fail(tags[i].pointer + "/begin", "begins with none of the triggers");
    if (!at_least_one) return Dispatch(front_.grammar, *rules_, dispatch, excludes, !stop_after_first, false);
    // The first tag stands at the very beginning.
    std::vector<RuleExpr> first;
    for (const TagParts& tag : tags) first.push_back(RuleExpr::Sequence({Literal(tag.begin), tag.rest}));
    if (stop_after_first) return RuleExpr::Choice(std::move(first));
    RuleExpr more = Dispatch(front_.grammar, *rules_, dispatch, excludes, true, false);
    return RuleExpr::Sequence({RuleExpr::Choice(std::move(first)), std::move(more)});
  }

  RuleExpr Schema(const JsonValue& schema, const std::string& pointer, const SchemaOptions& options) {
    try {
      return RuleExpr::Of(SchemaSymbol(front_, schema, options));
    } catch (const SpecError& error) {
      throw SpecError(error.code(), "#" + pointer, error.what());
    }
  }

  // `enclosing`: ends of the tags around, which free text must leave alone.
  RuleExpr Format(const JsonValue& format, const std::string& pointer, const Words& enclosing, int depth) {
    if (depth > limits::kTagDepth) Fail(pointer, "nested too deeply");
    if (!format.IsObject()) Fail(pointer, "must be an object");
    // Inside a list of tags the type may be left out.
    const JsonValue* named = format.Find("type");
    if (!named) Fail(pointer + "/type", "is missing");
    const std::string& type = Text(*named, pointer + "/type");
    if (type == "const_string") {
      const std::string& text = Text(Need(format, "value", pointer), pointer + "/value");
      return Literal(text);
    }
    if (type == "json_schema" || type == "qwen_xml_parameter") {
      SchemaOptions options = front_.schema;
      const JsonValue* style = format.Find("style");
      const bool is_named = style && style->type != JsonValue::kNull;
      const std::string name = is_named ? Text(*style, pointer + "/style") : "json";
      options.tags = FindTagStyle(type == "json_schema" ? name : "qwen_xml");
      if (!options.tags && name != "json") Unsupported(pointer + "/style", "unknown style '" + name + "'");
      if (const JsonValue* blanks = format.Find("max_whitespace_cnt"))
        options.max_blanks = blanks->type == JsonValue::kNull ? kMaxBlanks : Count(*blanks, pointer + "/max_whitespace_cnt");
      options.any_order = options.any_order || Flag(format, "any_order", false, pointer);
      return Schema(Need(format, "json_schema", pointer), pointer + "/json_schema", options);
    }
    if (type == "grammar" || type == "regex") {
      const char* key = type == "regex" ? "pattern" : "grammar";
      const std::string& text = Text(Need(format, key, pointer), pointer + "/" + key);
      try {
        return RuleExpr::Of(type == "regex" ? RegexSymbol(front_, text) : EbnfSymbol(front_, text, "root"));
      } catch (const SpecError& error) {
        throw SpecError(error.code(), "#" + pointer + "/" + key, error.what());
      }
    }
    if (type == "any_text") {
      NodeId text = TextWithout(pool_, Joined(TextList(format, "excludes", pointer), enclosing));
      if (const JsonValue* limit = format.Find("max_chars"); limit && limit->type != JsonValue::kNull) {
        CharEncoder plain(pool_, TextForm::kPlain);
        const uint32_t most = Count(*limit, pointer + "/max_chars");
        text = pool_.And({text, pool_.Repeat(plain.Any(), 0, most)});
      }
      RefuseTokenLimit(format, pointer);
      return RuleExpr::Text(text);
    }
    if (type == "sequence" || type == "or") {
      std::vector<RuleExpr> parts;
      const std::vector<JsonValue> elements = List(format, "elements", pointer);
      for (size_t i = 0; i < elements.size(); i++) {
        // Only what ends the sequence meets the enclosing end; free text before that is bounded by what follows it.
        parts.push_back(Format(elements[i], pointer + "/elements/" + std::to_string(i), enclosing, depth + 1));
      }
      return type == "or" ? RuleExpr::Choice(std::move(parts)) : RuleExpr::Sequence(std::move(parts));
    }
    if (type == "optional" || type == "plus" || type == "star" || type == "repeat") {
      RuleExpr content = Format(Need(format, "content", pointer), pointer + "/content", enclosing, depth + 1);
      if (type == "optional") return RuleExpr::Repeat(std::move(content), 0, 1);
      if (type != "repeat") return RuleExpr::Repeat(std::move(content), type == "plus" ? 1 : 0, kUnlimited);
      const uint32_t min = Count(Need(format, "min", pointer), pointer + "/min");
      const JsonValue& most = Need(format, "max", pointer);
      const uint32_t max = most.IsNumber() && most.text == "-1" ? kUnlimited : Count(most, pointer + "/max");
      if (max < min) Fail(pointer + "/max", "is less than min");
      return RuleExpr::Repeat(std::move(content), min, max);
    }
    if (type == "tag") return Tag(format, pointer, depth);
    if (type == "triggered_tags") {
      const std::vector<JsonValue> list = List(format, "tags", pointer);
      std::vector<TagParts> tags;
      for (size_t i = 0; i < list.size(); i++) {
        const std::string below = pointer + "/tags/" + std::to_string(i);
        if (!list[i].IsObject()) Fail(below, "must be an object");
        TagParts tag;
        tag.begin = Text(Need(list[i], "begin", below), below + "/begin");
        tag.rest = TagRest(list[i], below, depth + 1);
        tag.pointer = below;
        tags.push_back(std::move(tag));
      }
      const Words triggers = TextList(format, "triggers", pointer);
      if (triggers.empty()) Fail(pointer + "/triggers", "must be a non-empty list of strings");
      return Triggered(triggers, tags, Joined(TextList(format, "excludes", pointer), enclosing),
                       Flag(format, "at_least_one", false, pointer), Flag(format, "stop_after_first", false, pointer),
                       pointer);
    }
    if (type == "tags_with_separator") {
      const std::vector<JsonValue> list = List(format, "tags", pointer);
      std::vector<RuleExpr> tags;
      for (size_t i = 0; i < list.size(); i++) tags.push_back(Tag(list[i], pointer + "/tags/" + std::to_string(i), depth + 1));
      const std::string& separator = Text(Need(format, "separator", pointer), pointer + "/separator");
      RuleExpr tag = RuleExpr::Choice(std::move(tags));
      RuleExpr all = tag;
      if (!Flag(format, "stop_after_first", false, pointer))
        all = RuleExpr::Sequence({tag, RuleExpr::Repeat(RuleExpr::Sequence({Literal(separator), tag}), 0, kUnlimited)});
      return Flag(format, "at_least_one", false, pointer) ? all : RuleExpr::Repeat(std::move(all), 0, 1);
    }
    if (type == "dispatch") {
      std::vector<Trigger> triggers;
      const std::vector<JsonValue> list = List(format, "rules", pointer);
      for (size_t i = 0; i < list.size(); i++) {
        const std::string below = pointer + "/rules/" + std::to_string(i);
        if (!list[i].IsArray() || list[i].items.size() != 2) Fail(below, "must be a pair of a string and a format");
        const std::string& word = Text(list[i].items[0], below + "/0");
        if (word.empty()) Fail(below + "/0", "must not be empty");
        triggers.push_back({word, Format(list[i].items[1], below + "/1", {}, depth + 1)});
      }
      return Dispatch(front_.grammar, *rules_, triggers, Joined(TextList(format, "excludes", pointer), enclosing),
                      Flag(format, "loop", true, pointer), false);
    }
    if (type == "token") {
      TokenSet set;
      set.tokens.push_back(Token(Need(format, "token", pointer), pointer + "/token"));
      return RuleExpr::Of(front_.grammar.Tokens(std::move(set)));
    }
    if (type == "exclude_token" || type == "any_tokens") {
      TokenSet set = Tokens(format, "exclude_tokens", pointer);
      if (type == "exclude_token" && format.Find("token")) set.tokens.push_back(Token(*format.Find("token"), pointer + "/token"));
      std::sort(set.tokens.begin(), set.tokens.end());
      set.inverted = true;
      RuleExpr one = RuleExpr::Of(front_.grammar.Tokens(std::move(set)));
      if (type == "exclude_token") return one;
      const JsonValue* limit = format.Find("max_tokens");
      const bool bounded = limit && limit->type != JsonValue::kNull;
      return RuleExpr::Repeat(std::move(one), 0, bounded ? Count(*limit, pointer + "/max_tokens") : kUnlimited);
    }
    if (type == "token_triggered_tags") return TokenTriggered(format, pointer, depth);
    Unsupported(pointer + "/type", "unknown format '" + type + "'");
  }

  void RefuseTokenLimit(const JsonValue& format, const std::string& pointer) {
    const JsonValue* limit = format.Find("max_tokens");
    if (limit && limit->type != JsonValue::kNull)
      Unsupported(pointer + "/max_tokens", "a limit in tokens is not supported here; use max_chars");
  }

  uint32_t Token(const JsonValue& value, const std::string& pointer) {
    if (value.IsString()) {
      const int64_t token = front_.vocabulary.FindSpecial(value.text);
      if (token < 0) Fail(pointer, "the vocabulary has no special token '" + value.text + "'");
      return static_cast<uint32_t>(token);
    }
    const uint32_t token = Count(value, pointer);
    if (token >= front_.vocabulary.size()) Fail(pointer, "the vocabulary has no token " + value.text);
    return token;
  }

  TokenSet Tokens(const JsonValue& format, const char* key, const std::string& pointer) {
    TokenSet set;
    if (const JsonValue* list = format.Find(key); list && list->type != JsonValue::kNull) {
      if (!list->IsArray()) Fail(pointer + "/" + key, "must be a list of tokens");
      for (const JsonValue& item : list->items) set.tokens.push_back(Token(item, pointer + "/" + key));
    }
    std::sort(set.tokens.begin(), set.tokens.end());
    return set;
  }

  // A string, or {"type": "token", "token": ...}.
  RuleExpr Edge(const JsonValue& value, const std::string& pointer) {
    if (value.IsString()) return Literal(value.text);
    const JsonValue* type = value.Find("type");
    if (!type || !type->IsString() || type->text != "token") Fail(pointer, "must be a string or a token");
    TokenSet set;
    set.tokens.push_back(Token(Need(value, "token", pointer), pointer + "/token"));
    return RuleExpr::Of(front_.grammar.Tokens(std::move(set)));
  }

  RuleExpr Tag(const JsonValue& tag, const std::string& pointer, int depth) {
    if (!tag.IsObject()) Fail(pointer, "must be an object");
    RuleExpr begin = Edge(Need(tag, "begin", pointer), pointer + "/begin");
    return RuleExpr::Sequence({std::move(begin), TagRest(tag, pointer, depth)});
  }

  static bool IsUnlimitedText(const JsonValue& format) {
    const JsonValue* type = format.Find("type");
    return type && (type->text == "any_text" || type->text == "triggered_tags" || type->text == "tags_with_separator");
  }

  // Content and end; free text inside never holds the end.
  RuleExpr TagRest(const JsonValue& tag, const std::string& pointer, int depth) {
    const JsonValue& end = Need(tag, "end", pointer);
    std::vector<JsonValue> ends{end};
    if (end.IsArray()) ends = end.items;
    if (ends.empty()) Fail(pointer + "/end", "must not be empty");
    Words words;
    std::vector<RuleExpr> options;
    for (const JsonValue& one : ends) {
      if (one.IsString() && !one.text.empty()) words.push_back(one.text);
      options.push_back(Edge(one, pointer + "/end"));
    }
    const JsonValue& inner = Need(tag, "content", pointer);
    const bool has_own_end = inner.Find("excludes") != nullptr;
    if (words.empty() && !has_own_end && IsUnlimitedText(inner) && ends[0].IsString())
      Fail(pointer + "/end", "must not be empty after free text, which would never end");
    RuleExpr content = Format(inner, pointer + "/content", words, depth + 1);
    return RuleExpr::Sequence({std::move(content), RuleExpr::Choice(std::move(options))});
  }

  // Tokens until a trigger token, then a tag that begins with it.
  RuleExpr TokenTriggered(const JsonValue& format, const std::string& pointer, int depth) {
    const TokenSet triggers = Tokens(format, "trigger_tokens", pointer);
    if (triggers.tokens.empty()) Fail(pointer + "/trigger_tokens", "must be a non-empty list of tokens");
    TokenSet free = Tokens(format, "exclude_tokens", pointer);
    free.tokens.insert(free.tokens.end(), triggers.tokens.begin(), triggers.tokens.end());
    std::sort(free.tokens.begin(), free.tokens.end());
    free.inverted = true;
    const std::vector<JsonValue> list = List(format, "tags", pointer);
    std::vector<RuleExpr> tags;
    for (size_t i = 0; i < list.size(); i++) {
      const std::string below = pointer + "/tags/" + std::to_string(i);
      const JsonValue& begin = Need(list[i], "begin", below);
      if (begin.IsString()) Fail(below + "/begin", "must be a token");
      tags.push_back(Tag(list[i], below, depth + 1));
    }
    RuleExpr text = RuleExpr::Repeat(RuleExpr::Of(front_.grammar.Tokens(std::move(free))), 0, kUnlimited);
    RuleExpr tag = RuleExpr::Choice(std::move(tags));
    const bool once = Flag(format, "stop_after_first", false, pointer);
    if (Flag(format, "at_least_one", false, pointer)) {
      if (once) return tag;
      return RuleExpr::Sequence({tag, text, RuleExpr::Repeat(RuleExpr::Sequence({tag, text}), 0, kUnlimited)});
    }
    if (once) return RuleExpr::Sequence({text, RuleExpr::Repeat(tag, 0, 1)});
    return RuleExpr::Sequence({text, RuleExpr::Repeat(RuleExpr::Sequence({tag, text}), 0, kUnlimited)});
  }

  FrontEnd& front_;
  RegexPool& pool_;
  std::shared_ptr<RuleSet> rules_;
};

}  // namespace

Symbol StructuralTagSymbol(FrontEnd& front, std::string_view text) {
  JsonError error;
  const JsonValue root = ParseJson(text, &error);
  if (!error.message.empty())
    throw SpecError("INVALID_REQUEST", LineAndColumn(text, error.position), "the structural tag is not JSON: " + error.message);
  return TagReader(front).Read(root);
}

}  // namespace onpolicy::grammar
