// State that all rules of one schema share: the results of the stages before them, the text between JSON tokens, and the values seen so
// far.
#pragma once
#include <map>

#include "grammar/json-schema/seen-values.h"
#include "grammar/json-schema/shapes/shape.h"
#include "grammar/pushdown/grammar.h"

namespace onpolicy::grammar {

// JSON's tokens, with the blanks around them.
struct Punctuation {
  Punctuation(RegexPool& pool, const SchemaOptions& options);

  NodeId gap;      // blanks between JSON tokens
  NodeId tag_gap;  // blanks between tagged parameters, and around their JSON values
  NodeId quote, colon, key_end, comma, bare_comma;  // a bare comma has no blanks after it
  NodeId open_object, close_object, close_empty_object, open_array, close_array, close_empty_array;
};

struct RuleContext {
  RuleContext(Grammar& grammar, JsonValue schema, const SchemaOptions& options)
      : grammar(grammar), pool(grammar.regex()), compiler(pool, std::move(schema), options), values(compiler.values()),
        formulas(compiler.formulas()), shapes(compiler), parts(shapes.parts()), seen(shapes, values),
        marks(pool, compiler.options()) {}

  // Makes a sequence whose first symbol is a terminal.
  SequenceId Sequence(NodeId first, std::initializer_list<Symbol> rest = {}) {
    std::vector<Symbol> symbols{grammar.Terminal(first)};
    symbols.insert(symbols.end(), rest);
    return grammar.Sequence(symbols);
  }

  // Puts a terminal before several productions. Returns none if there are none.
  std::vector<SequenceId> Behind(NodeId first, std::vector<SequenceId> rest) {
    if (rest.empty()) return rest;
    return {Sequence(first, {grammar.Rule([rest = std::move(rest)](Grammar&) { return rest; })})};
  }

  Grammar& grammar;
  RegexPool& pool;
  SchemaCompiler compiler;
  ValueFormulas& values;
  FormulaTable& formulas;
  ShapeTable shapes;
  ShapeParts& parts;
  SeenValues seen;
  Punctuation marks;
};

// Caches symbols by key.
template <typename Key>
class SymbolMemo {
 public:
  template <typename Make>
  Symbol Get(const Key& key, Make make) {
    if (const auto known = symbols_.find(key); known != symbols_.end()) return known->second;
    const Symbol symbol = make();
    return symbols_.emplace(key, symbol).first->second;
  }

 private:
  std::map<Key, Symbol> symbols_;
};

// Key of a shape whose rules are made, in JSON or as tagged parameters.
struct SpecKey {
  Shape shape;
  bool tagged;
  bool operator==(const SpecKey&) const = default;
  struct Hash {
    size_t operator()(const SpecKey& key) const;
  };
};
using SpecIndex = std::unordered_map<SpecKey, uint32_t, SpecKey::Hash>;

}  // namespace onpolicy::grammar
