// Shapes -> rules of the grammar, made when a document reaches them. What a grammar cannot count, the rule's own identity
// holds: which keys were seen, how many members or items, which demands are met. Content that must not repeat (further
// keys, unique items) is read back from the text when a member or item ends, by a deferred symbol.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "json-schema/shape.h"
#include "pushdown/grammar.h"

namespace onpolicy::grammar {

class SchemaRules {
 public:
  SchemaRules(Grammar& grammar, JsonValue schema, const SchemaOptions& options);
  // The symbol of the whole document; throws SpecError. `this` must live as long as the grammar: see Grammar::Keep.
  Symbol Root();
  const std::vector<std::string>& warnings() { return compiler_.warnings(); }

 private:
  // Demands (a bit each) that a member may meet: always, or with some of its values.
  struct Meeting {
    uint64_t always = 0, maybe = 0;
  };
  struct KnownKey {
    std::string key;
    FormulaId formula;
    NodeId text;          // inside the quotes
    int group = -1;       // keys of one `properties` keep their order; -1: any place
    uint32_t rank = 0;
    bool required = false;
    Meeting meeting;
  };
  struct ExtraKeys {
    NodeId keys;
    FormulaId formula;
    uint64_t count;  // how many keys there are, capped
    bool open;       // every beginning of a key can go on, so a repeated key is refused at its closing quote
    Meeting meeting;
  };
  struct ObjectSpec {
    std::vector<KnownKey> known;
    std::vector<ExtraKeys> extras;
    std::vector<FormulaId> demands;
    int groups = 0;
    uint64_t min = 0, max = UINT64_MAX;
    bool count_matters = false;
    bool tagged = false;  // members are tagged parameters
  };
  struct ObjectState {
    uint32_t spec = 0;
    bool first = true;
    std::vector<uint32_t> next_rank;  // by group
    std::vector<bool> seen;           // by known key; only those without a group, and what is required
    uint64_t count = 0;
    uint64_t met = 0;                 // demands, a bit each
    uint32_t extra_set = 0;           // in extra_sets_
    uint32_t excluded = 0;            // in excluded_sets_: objects of which what is still to come must differ
    auto operator<=>(const ObjectState&) const = default;
  };
  struct ArraySpec {
    Shape shape;
    size_t prefix = 0;
    uint64_t min = 0, max = UINT64_MAX;
    std::vector<uint32_t> demands;  // atoms
    bool unique = false;
    bool count_matters = false;
    bool tagged = false;  // items are tagged parameters without a key
  };
  struct ArrayState {
    uint32_t spec = 0;
    uint64_t index = 0;  // capped at the prefix's end unless counts matter
    std::vector<uint64_t> met;
    uint32_t seen_set = 0;  // in value_sets_
    uint32_t excluded = 0;  // in excluded_sets_: arrays of which the items to come must differ
    bool compares = false;  // arrays and objects are many, and compared with the seen ones when they end
    auto operator<=>(const ArrayState&) const = default;
  };
  struct ValueSet {
    std::vector<std::string> keys;      // canonical, sorted
    std::vector<FormulaId> scalars;     // formulas that only the seen scalars satisfy
    std::vector<NodeId> texts, numbers;  // of seen strings and numbers
    std::vector<JsonValue> compounds;    // the seen arrays and objects
  };
  // One way in which a member or item, and what comes after it, differs from excluded ones.
  struct Difference {
    FormulaId formula;
    uint32_t value = 0;  // what the value itself must differ from
    uint32_t rest = 0;   // what is to come must differ from
    std::optional<JsonValue> known;  // the only value of `formula`
  };
  // A value at the place in question, and the array or object without it.
  struct Head {
    JsonValue value, rest;
  };

  static constexpr uint64_t kImpossible = UINT64_MAX;
  static uint64_t AllDemands(const ObjectSpec& spec) { return (uint64_t{1} << spec.demands.size()) - 1; }
  bool IsBodyEmpty(const Shape& shape, uint32_t excluded);
  Symbol Value(FormulaId formula, uint32_t excluded = 0);
  std::vector<SequenceId> ValueProductions(FormulaId formula, uint32_t excluded);
  // exclusion.cc
  uint32_t Exclude(std::vector<JsonValue> values);
  bool ExcludesEmpty(uint32_t excluded) const;
  void AddScalar(const JsonValue& value, ValueSet* set);
  NodeId TextOf(const std::string& text);
  FormulaId WithoutScalars(FormulaId formula, const ValueSet& seen);
  std::vector<Difference> Differences(FormulaId formula, const std::vector<Head>& heads);
  std::vector<Head> ItemHeads(uint32_t excluded) const;
  std::vector<Head> MemberHeads(uint32_t excluded, const std::string& key) const;
  std::vector<std::string> ExcludedKeys(uint32_t excluded) const;
  bool CanDiffer(const ArrayState& state);
  bool CanDiffer(const ObjectState& state);
  // objects.cc
  Symbol ObjectBody(const Shape& shape, uint32_t excluded, bool tagged = false);
  uint32_t SpecOf(const Shape& shape, bool tagged);
  void AddExtras(const Shape& shape, ObjectSpec* spec);
  Symbol Object(const ObjectState& state);
  Symbol AfterExtra(const ObjectState& state);
  Symbol AfterOpenKey(FormulaId formula, uint32_t excluded, const ObjectState& next);
  std::vector<SequenceId> ObjectProductions(const ObjectState& state, bool is_member);
  bool CanClose(const ObjectState& state) const;
  bool CanFinish(const ObjectState& state);
  // demands.cc
  Meeting MeetingOf(const ObjectSpec& spec, FormulaId formula, uint64_t of_key);
  FormulaId WithDemands(const ObjectSpec& spec, FormulaId formula, uint64_t demands);
  uint64_t LeastMembers(const ObjectState& state);
  bool IsOpen(const ObjectState& state, size_t key) const;
  ObjectState Taken(const ObjectState& state, size_t key) const;
  NodeId Unseen(const ObjectState& state, NodeId keys);
  // arrays.cc
  Symbol ArrayBody(const Shape& shape, uint32_t excluded, bool tagged = false);
  Symbol Array(const ArrayState& state);
  Symbol AfterUnique(const ArrayState& state);
  Symbol AfterUniqueComma(const ArrayState& state);
  Symbol UniqueRest(const ArrayState& state);
  std::vector<SequenceId> ArrayProductions(const ArrayState& state, bool is_item);
  bool CanCloseArray(const ArrayState& state);
  bool CanFinishArray(const ArrayState& state);
  FormulaId ItemOf(const ArrayState& state);
  static bool LastItem(std::string_view text, JsonValue* value);
  // Whether the value that ends at the end of the text is one of the seen ones; nothing when there is no such value.
  std::optional<bool> IsLastSeen(std::string_view text, uint32_t seen_set) const;
  bool HasPlenty(const ArrayState& state);
  Symbol SpacedItem(const ArrayState& state);
  uint32_t SeenWith(uint32_t seen_set, const JsonValue& value);

  // tagged.cc
  Symbol TaggedRoot(FormulaId root);
  NodeId TaggedKey(const std::string& key);
  NodeId TaggedKeys(NodeId keys);
  Symbol AfterTaggedKey(FormulaId formula, const ObjectState& next);
  Symbol TaggedValue(FormulaId formula);
  std::vector<SequenceId> TaggedProductions(FormulaId formula);
  NodeId TaggedTexts(FormulaId formula);

  Grammar& grammar_;
  SchemaCompiler compiler_;
  ShapeTable shapes_;
  const TagStyle* tags_;
  Automaton* plain_ = nullptr;  // see MakePlainAutomaton
  NodeId gap_ = kEpsilon;       // blanks between JSON tokens
  NodeId tag_gap_ = kEpsilon;   // blanks between tagged parameters, and around their JSON values
  NodeId colon_ = kEpsilon;
  NodeId open_object_, open_array_, comma_, close_object_, close_array_, close_empty_object_, close_empty_array_, key_end_, bare_comma_;
  std::map<std::pair<FormulaId, uint32_t>, Symbol> values_;
  std::vector<ObjectSpec> object_specs_;
  std::vector<ArraySpec> array_specs_;
  std::map<std::string, uint32_t> object_spec_index_, array_spec_index_;
  std::map<ObjectState, Symbol> objects_, members_, after_extra_;
  std::map<std::tuple<FormulaId, uint32_t, ObjectState>, Symbol> after_open_key_;
  std::map<std::pair<FormulaId, ObjectState>, Symbol> after_tagged_key_, tagged_members_;
  std::map<FormulaId, Symbol> tagged_values_;
  std::map<ArrayState, Symbol> arrays_, items_, unique_rest_, after_unique_, after_comma_;
  std::vector<std::vector<std::string>> extra_sets_{{}};
  std::map<std::vector<std::string>, uint32_t> extra_set_index_{{{}, 0}};
  std::vector<ValueSet> value_sets_{{}};
  std::map<std::vector<std::string>, uint32_t> value_set_index_{{{}, 0}};
  std::vector<std::vector<JsonValue>> excluded_sets_{{}};
  std::map<std::string, uint32_t> excluded_set_index_{{"", 0}};
  std::map<std::pair<NodeId, uint32_t>, NodeId> unseen_memo_;
  std::map<std::string, NodeId> long_texts_;
};

}  // namespace onpolicy::grammar
