// Shapes of objects -> rules: the possible next keys, and the demands that are still unmet. A rule's state holds what a grammar cannot
// count: the keys seen, the number of members, and the demands met.
#pragma once
#include <compare>
#include <tuple>
#include <utility>
#include <vector>

#include "grammar/json-schema/object-spec.h"

namespace onpolicy::grammar {

class SchemaRules;

struct ObjectState {
  uint32_t spec = 0;
  bool first = true;
  std::vector<uint32_t> next_rank;  // by group
  KeySet seen = 0;                  // known keys without a group, by their numbers
  uint64_t count = 0;
  uint64_t met = 0;      // demands, a bit each
  SeenSet further = 0;   // further keys seen so far
  SeenSet excluded = 0;  // objects from which the rest must differ
  auto operator<=>(const ObjectState&) const = default;
};

class ObjectRules {
 public:
  ObjectRules(RuleContext& context, SchemaRules& rules) : context_(context), rules_(rules), specs_(context) {}

  // Returns the rest of an object after its opening brace, for objects that are not in `excluded`.
  Symbol Body(const Shape& shape, SeenSet excluded, bool tagged = false);

 private:
  friend class MemberProductions;

  Symbol Object(const ObjectState& state);
  Symbol AfterFurther(const ObjectState& state);
  Symbol AfterOpenKey(FormulaId formula, SeenSet excluded, const ObjectState& next);
  // The symbol after one of many keys, chosen by the key's tag.
  Symbol AfterManyKeys(const ObjectState& state);
  Symbol AfterTaggedKey(FormulaId formula, const ObjectState& next);
  Symbol MemberAfterComma(const ObjectState& state);
  std::vector<SequenceId> Productions(const ObjectState& state, bool is_member);
  bool IsOpen(const ObjectState& state, size_t key) const;
  ObjectState Taken(const ObjectState& state, size_t key) const;
  bool CanClose(const ObjectState& state) const;
  // Returns the number of keys that may still come, and of the required ones among them.
  ObjectSpec::RankCount CountOpen(const ObjectState& state) const;
  bool CanFinish(const ObjectState& state);
  // Returns the same for an object with so many keys left.
  bool CanFinish(const ObjectState& state, ObjectSpec::RankCount count);
  bool CanDiffer(const ObjectState& state);
  uint64_t LeastMembers(const ObjectState& state);
  // Calls `visit(index)` for the known keys that may come next in their order, up to the first required one.
  template <typename Visit>
  void ForEachNext(const ObjectState& state, Visit visit) const;
  // Finds the ranks, both included, of the keys of a group that may come next if there are many. Returns false if there are none.
  bool FindRanks(const ObjectState& state, size_t group, uint32_t* from, uint32_t* to);
  // Returns true if one of many keys without a group may come next, provided that one of them is left.
  bool CanTakeLoose(const ObjectState& state, bool required);

  RuleContext& context_;
  SchemaRules& rules_;
  ObjectSpecs specs_;
  SymbolMemo<ObjectState> objects_, members_, after_further_, after_many_;
  SymbolMemo<std::pair<FormulaId, ObjectState>> many_values_;
  SymbolMemo<std::tuple<FormulaId, SeenSet, ObjectState>> after_open_key_;
  SymbolMemo<std::pair<FormulaId, ObjectState>> after_tagged_key_, tagged_members_;
};

}  // namespace onpolicy::grammar
