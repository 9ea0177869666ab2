// Structural tags, old form (`structures`, `triggers`) and new form (`format`) -> rules.
#include <algorithm>
#include <map>

#include "base/limits.h"
#include "grammar/notations/front-ends.h"
#include "grammar/notations/tag-place.h"
#include "grammar/pushdown/text-tools.h"
#include "grammar/regex/char-class.h"

namespace onpolicy::grammar {

namespace {

// Maximum white space between JSON tokens if the format sets no limit.
constexpr uint32_t kMaxBlanks = 20;

using Words = std::vector<std::string>;

// Context of a format. Free text in it must not contain the ends of the tags around it.
struct Around {
  Words ends;
  int depth = 0;

  Around Deeper() const { return {ends, depth + 1}; }
};

// A tag, split behind its beginning.
struct TagParts {
  TagPlace place;
  std::string begin;
  RuleExpr rest;
};

Words Joined(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool IsUnlimitedText(const TagPlace& format) {
  const JsonValue* type = format.value().Find("type");
  return type && (type->text == "any_text" || type->text == "triggered_tags" || type->text == "tags_with_separator");
}

RuleExpr AnyNumberOf(RuleExpr expr) { return RuleExpr::Repeat(std::move(expr), 0, kUnlimited); }

uint32_t TokenId(const Vocabulary& vocabulary, const TagPlace& place) {
  if (place.value().IsString()) {
    const int64_t token = vocabulary.FindSpecial(place.Text());
    if (token < 0) place.Fail("the vocabulary has no special token '" + place.Text() + "'");
    return static_cast<uint32_t>(token);
  }
  const uint32_t token = place.Count();
  if (token >= vocabulary.size()) place.Fail("the vocabulary has no token " + place.value().text);
  return token;
}

std::vector<uint32_t> TokenIds(const Vocabulary& vocabulary, const TagPlace& format, const char* key) {
  std::vector<uint32_t> tokens;
  if (const std::optional<TagPlace> list = format.Given(key)) {
    if (!list->value().IsArray()) list->Fail("must be a list of tokens");
    for (const TagPlace& item : list->Items()) tokens.push_back(TokenId(vocabulary, item));
  }
  return tokens;
}

class TagReader {
 public:
  explicit TagReader(FrontEnd& front)
      : front_(front), pool_(front.grammar.regex()), rules_(std::make_shared<RuleSet>(front.grammar)) {}

  Symbol Read(const TagPlace& root) {
    const TagPlace type = root.Object().At("type");
    const bool is_new = root.Has("format");
    if (root.Has("type") ? !type.value().IsString() || type.Text() != "structural_tag" : !is_new)
      type.Fail("must be \"structural_tag\"");
    const uint32_t start = rules_->Add();
    RuleExpr body = is_new ? Format(root.At("format"), {}) : Legacy(root);
    rules_->Define(start, std::move(body));
    return rules_->Compile(start);
  }

 private:
  using Reader = RuleExpr (TagReader::*)(const TagPlace&, const Around&);
  static const std::map<std::string_view, Reader> kFormats;

  RuleExpr Format(const TagPlace& format, const Around& around) {
    if (around.depth > limits::kTagDepth) format.Fail("nested too deeply");
    const TagPlace type = format.Object().Need("type");
    const auto found = kFormats.find(type.Text());
    if (found == kFormats.end()) type.Unsupported("unknown format '" + type.Text() + "'");
    return (this->*found->second)(format, around);
  }

  RuleExpr Literal(const std::string& text) { return RuleExpr::Text(pool_.Literal(text)); }

  RuleExpr Schema(const TagPlace& schema, const SchemaOptions& options) {
    const size_t known = front_.warnings.size();
    RuleExpr rule = schema.Inner([&] { return RuleExpr::Of(SchemaSymbol(front_, schema.value(), options)); });
    for (size_t i = known; i < front_.warnings.size(); i++) front_.warnings[i].text.insert(1, schema.pointer());
    return rule;
  }

  // Free text up to a trigger, then one of the structures that begin with it.
  RuleExpr Legacy(const TagPlace& root) {
    const std::vector<TagPlace> structures = root.List("structures");
    const Words triggers = root.Texts("triggers");
    if (triggers.empty()) root.At("triggers").Fail("must be a non-empty list");
    JsonValue any;
    any.type = JsonValue::kTrue;
    std::vector<TagParts> tags;
    for (const TagPlace& structure : structures) {
      const std::string& begin = structure.Object().Need("begin").Text();
      RuleExpr content = Schema(structure.Has("schema") ? structure.At("schema") : TagPlace(any, ""), front_.schema);
      RuleExpr end = Literal(structure.Need("end").Text());
      tags.push_back({structure, begin, RuleExpr::Sequence({std::move(content), std::move(end)})});
    }
    return Triggered(root, triggers, tags, {}, false, false);
  }

  RuleExpr Triggered(const TagPlace& place, const Words& triggers, const std::vector<TagParts>& tags,
                     const Words& excludes, bool at_least_one, bool once) {
    for (size_t i = 0; i < triggers.size(); i++)
      for (size_t k = 0; k < triggers.size(); k++)
        if (i != k && triggers[k].starts_with(triggers[i]))
          place.At("triggers").Items()[i].Fail("is the beginning of another trigger");
    std::vector<Trigger> dispatch;
    std::vector<bool> used(tags.size(), false);
    for (const std::string& trigger : triggers) {
      std::vector<RuleExpr> options;
      for (size_t i = 0; i < tags.size(); i++) {
        if (!tags[i].begin.starts_with(trigger)) continue;
        used[i] = true;
        options.push_back(RuleExpr::Sequence({Literal(tags[i].begin.substr(trigger.size())), tags[i].rest}));
      }
      if (options.empty()) place.At("triggers").Fail("no tag begins with the trigger '" + trigger + "'");
      dispatch.push_back({trigger, RuleExpr::Choice(std::move(options))});
    }
    for (size_t i = 0; i < tags.size(); i++)
      if (!used[i]) tags[i].place.At("begin").Fail("begins with none of the triggers");
    if (!at_least_one) return Dispatch(front_.grammar, *rules_, dispatch, excludes, !once);
    // The first tag is at the very beginning.
    std::vector<RuleExpr> first;
    for (const TagParts& tag : tags) first.push_back(RuleExpr::Sequence({Literal(tag.begin), tag.rest}));
    if (once) return RuleExpr::Choice(std::move(first));
    RuleExpr more = Dispatch(front_.grammar, *rules_, dispatch, excludes, true);
    return RuleExpr::Sequence({RuleExpr::Choice(std::move(first)), std::move(more)});
  }

  RuleExpr ConstString(const TagPlace& format, const Around&) { return Literal(format.Need("value").Text()); }

  // json_schema and qwen_xml_parameter.
  RuleExpr JsonSchema(const TagPlace& format, const Around&) {
    SchemaOptions options = front_.schema;
    const std::optional<TagPlace> style = format.Given("style");
    const std::string name = style ? style->Text() : "json";
    options.tags = FindTagStyle(format.At("type").Text() == "json_schema" ? name : "qwen_xml");
    if (!options.tags && name != "json") style->Unsupported("unknown style '" + name + "'");
    if (options.tags && options.tags->attribute == TagStyle::kQuoted) {
      const int64_t quote = front_.vocabulary.FindSpecial(options.tags->value_end);
      if (quote >= 0) options.quote_token = static_cast<uint32_t>(quote);
    }
    if (format.Has("max_whitespace_cnt")) {
      const std::optional<TagPlace> limit = format.Given("max_whitespace_cnt");
      options.max_blanks = limit ? limit->Count() : kMaxBlanks;
    }
    options.any_order = options.any_order || format.Flag("any_order");
    return Schema(format.Need("json_schema"), options);
  }

  // `json_escaped`: the text is inside a JSON string.
  static TextForm Form(const TagPlace& format) { return format.Flag("json_escaped") ? TextForm::kJson : TextForm::kPlain; }

  RuleExpr RegexText(const TagPlace& format, const Around&) {
    const TagPlace pattern = format.Need("pattern");
    const std::string& text = pattern.Text();
    return pattern.Inner([&] { return RuleExpr::Of(RegexSymbol(front_, text, Form(format))); });
  }

  RuleExpr GrammarText(const TagPlace& format, const Around&) {
    const TagPlace grammar = format.Need("grammar");
    const std::string& text = grammar.Text();
    const std::optional<TagPlace> syntax = format.Given("syntax");
    const Dialect dialect = !syntax || syntax->Text() == "ebnf" ? Dialect::kEbnf : Dialect::kLark;
    if (dialect == Dialect::kEbnf && Form(format) != TextForm::kPlain) format.At("json_escaped").Unsupported("needs the syntax lark");
    if (dialect == Dialect::kLark && syntax->Text() != "lark") syntax->Unsupported("expected ebnf or lark");
    return grammar.Inner([&] { return RuleExpr::Of(GrammarSymbol(front_, text, dialect, Form(format))); });
  }

  RuleExpr AnyText(const TagPlace& format, const Around& around) {
    NodeId text = TextWithout(pool_, Joined(format.Texts("excludes"), around.ends));
    if (const std::optional<TagPlace> limit = format.Given("max_chars")) {
      CharEncoder plain(pool_, TextForm::kPlain);
      text = pool_.And({text, pool_.Repeat(plain.Any(), 0, limit->Count())});
    }
    const std::optional<TagPlace> limit = format.Given("max_tokens");
    return limit ? LimitedText(text, limit->Count()) : RuleExpr::Text(text);
  }

  // Whole characters of a text, in at most `tokens` tokens that begin in it.
  RuleExpr LimitedText(NodeId text, uint32_t tokens) {
    const NodeId some = pool_.And({text, CharEncoder(pool_, TextForm::kPlain).AnyText(), pool_.Not(kEpsilon)});
    if (tokens == 0 || !pool_.IsLive(some)) return RuleExpr::Text(kEpsilon);
    const std::vector<Symbol> symbols{front_.grammar.SharedTerminal(some), front_.grammar.TokensLeft(tokens)};
    return RuleExpr::Of(front_.grammar.Rule(
        [symbols](Grammar& grammar) { return std::vector<SequenceId>{grammar.Sequence({}), grammar.Sequence(symbols)}; }));
  }

  // sequence and or. Free text before the last element is limited by the element that follows it.
  RuleExpr Elements(const TagPlace& format, const Around& around) {
    std::vector<RuleExpr> parts;
    for (const TagPlace& element : format.List("elements")) parts.push_back(Format(element, around.Deeper()));
    return format.At("type").Text() == "or" ? RuleExpr::Choice(std::move(parts)) : RuleExpr::Sequence(std::move(parts));
  }

  // optional, plus, star and repeat.
  RuleExpr Repeated(const TagPlace& format, const Around& around) {
    const std::string& type = format.At("type").Text();
    RuleExpr content = Format(format.Need("content"), around.Deeper());
    if (type == "optional") return RuleExpr::Repeat(std::move(content), 0, 1);
    if (type != "repeat") return RuleExpr::Repeat(std::move(content), type == "plus" ? 1 : 0, kUnlimited);
    const uint32_t min = format.Need("min").Count();
    const TagPlace most = format.Need("max");
    const uint32_t max = most.value().IsNumber() && most.value().text == "-1" ? kUnlimited : most.Count();
    if (max < min) most.Fail("is less than min");
    return RuleExpr::Repeat(std::move(content), min, max);
  }

  // Tags in a list need no `type`.
  RuleExpr TriggeredTags(const TagPlace& format, const Around& around) {
    std::vector<TagParts> tags;
    for (const TagPlace& tag : format.List("tags")) {
      const std::string& begin = tag.Object().Need("begin").Text();
      tags.push_back({tag, begin, TagRest(tag, around.Deeper())});
    }
    const Words triggers = format.Texts("triggers");
    if (triggers.empty()) format.At("triggers").Fail("must be a non-empty list of strings");
    return Triggered(format, triggers, tags, Joined(format.Texts("excludes"), around.ends), format.Flag("at_least_one"),
                     format.Flag("stop_after_first"));
  }

  RuleExpr SeparatedTags(const TagPlace& format, const Around& around) {
    std::vector<RuleExpr> tags;
    for (const TagPlace& tag : format.List("tags")) tags.push_back(Tag(tag, around.Deeper()));
    const std::string& separator = format.Need("separator").Text();
    RuleExpr tag = RuleExpr::Choice(std::move(tags));
    RuleExpr all = tag;
    if (!format.Flag("stop_after_first"))
      all = RuleExpr::Sequence({tag, AnyNumberOf(RuleExpr::Sequence({Literal(separator), tag}))});
    return format.Flag("at_least_one") ? all : RuleExpr::Repeat(std::move(all), 0, 1);
  }

  RuleExpr Dispatched(const TagPlace& format, const Around& around) {
    std::vector<Trigger> triggers;
    for (const TagPlace& rule : format.List("rules")) {
      const std::vector<TagPlace> pair = rule.Items();
      if (!rule.value().IsArray() || pair.size() != 2) rule.Fail("must be a pair of a string and a format");
      if (pair[0].Text().empty()) pair[0].Fail("must not be empty");
      triggers.push_back({pair[0].Text(), Format(pair[1], {{}, around.depth + 1})});
    }
    return Dispatch(front_.grammar, *rules_, triggers, Joined(format.Texts("excludes"), around.ends),
                    format.Flag("loop", true));
  }

  RuleExpr OneOf(std::vector<uint32_t> tokens, bool inverted) { return RuleExpr::Of(front_.OneOf(std::move(tokens), inverted)); }

  RuleExpr Token(const TagPlace& format, const Around&) {
    return OneOf({TokenId(front_.vocabulary, format.Need("token"))}, false);
  }

  RuleExpr ExcludeToken(const TagPlace& format, const Around&) {
    std::vector<uint32_t> tokens = TokenIds(front_.vocabulary, format, "exclude_tokens");
    if (format.Has("token")) tokens.push_back(TokenId(front_.vocabulary, format.At("token")));
    return OneOf(std::move(tokens), true);
  }

  RuleExpr AnyTokens(const TagPlace& format, const Around&) {
    const std::optional<TagPlace> limit = format.Given("max_tokens");
    RuleExpr one = OneOf(TokenIds(front_.vocabulary, format, "exclude_tokens"), true);
    return RuleExpr::Repeat(std::move(one), 0, limit ? limit->Count() : kUnlimited);
  }

  // A string, or {"type": "token", "token": ...}.
  RuleExpr Edge(const TagPlace& place) {
    if (place.value().IsString()) return Literal(place.Text());
    const JsonValue* type = place.value().Find("type");
    if (!type || !type->IsString() || type->text != "token") place.Fail("must be a string or a token");
    return Token(place, {});
  }

  RuleExpr Tag(const TagPlace& tag, const Around& around) {
    RuleExpr begin = Edge(tag.Object().Need("begin"));
    return RuleExpr::Sequence({std::move(begin), TagRest(tag, around)});
  }

  // Content and end of a tag. Free text inside never contains the end.
  RuleExpr TagRest(const TagPlace& tag, const Around& around) {
    const TagPlace end = tag.Need("end");
    std::vector<TagPlace> ends{end};
    if (end.value().IsArray()) ends = end.Items();
    if (ends.empty()) end.Fail("must not be empty");
    Words words;
    std::vector<RuleExpr> options;
    for (const TagPlace& one : ends) {
      if (one.value().IsString() && !one.Text().empty()) words.push_back(one.Text());
      options.push_back(Edge(one));
    }
    const TagPlace inner = tag.Need("content");
    if (words.empty() && !inner.Has("excludes") && IsUnlimitedText(inner) && ends[0].value().IsString())
      end.Fail("must not be empty after free text, which would never end");
    RuleExpr content = Format(inner, {std::move(words), around.depth + 1});
    return RuleExpr::Sequence({std::move(content), RuleExpr::Choice(std::move(options))});
  }

  // Tokens up to a trigger token, then a tag that begins with it.
  RuleExpr TokenTriggered(const TagPlace& format, const Around& around) {
    const std::vector<uint32_t> triggers = TokenIds(front_.vocabulary, format, "trigger_tokens");
    if (triggers.empty()) format.At("trigger_tokens").Fail("must be a non-empty list of tokens");
    std::vector<uint32_t> taken = TokenIds(front_.vocabulary, format, "exclude_tokens");
    taken.insert(taken.end(), triggers.begin(), triggers.end());
    std::vector<RuleExpr> tags;
    for (const TagPlace& tag : format.List("tags")) {
      const TagPlace begin = tag.Need("begin");
      if (begin.value().IsString()) begin.Fail("must be a token");
      tags.push_back(Tag(tag, around.Deeper()));
    }
    RuleExpr text = AnyNumberOf(OneOf(std::move(taken), true)), tag = RuleExpr::Choice(std::move(tags));
    const bool once = format.Flag("stop_after_first"), at_least_one = format.Flag("at_least_one");
    if (once) return at_least_one ? tag : RuleExpr::Sequence({text, RuleExpr::Repeat(tag, 0, 1)});
    RuleExpr more = AnyNumberOf(RuleExpr::Sequence({tag, text}));
    return at_least_one ? RuleExpr::Sequence({tag, text, more}) : RuleExpr::Sequence({text, more});
  }

  FrontEnd& front_;
  RegexPool& pool_;
  std::shared_ptr<RuleSet> rules_;
};

const std::map<std::string_view, TagReader::Reader> TagReader::kFormats = {
    {"const_string", &TagReader::ConstString},
    {"json_schema", &TagReader::JsonSchema},
    {"qwen_xml_parameter", &TagReader::JsonSchema},
    {"regex", &TagReader::RegexText},
    {"grammar", &TagReader::GrammarText},
    {"any_text", &TagReader::AnyText},
    {"sequence", &TagReader::Elements},
    {"or", &TagReader::Elements},
    {"optional", &TagReader::Repeated},
    {"plus", &TagReader::Repeated},
    {"star", &TagReader::Repeated},
    {"repeat", &TagReader::Repeated},
    {"tag", &TagReader::Tag},
    {"triggered_tags", &TagReader::TriggeredTags},
    {"tags_with_separator", &TagReader::SeparatedTags},
    {"dispatch", &TagReader::Dispatched},
    {"token", &TagReader::Token},
    {"exclude_token", &TagReader::ExcludeToken},
    {"any_tokens", &TagReader::AnyTokens},
    {"token_triggered_tags", &TagReader::TokenTriggered},
};

}  // namespace

Symbol StructuralTagSymbol(FrontEnd& front, std::string_view text) {
  const JsonValue root = ReadJson(text, "structural tag");
  return TagReader(front).Read({root, ""});
}

}  // namespace onpolicy::grammar
