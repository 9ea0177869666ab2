// Shapes of objects -> rules: which keys may come next, and what the object still owes. A rule's state is what a
// grammar cannot count: which keys were seen, how many members, which demands are met.
#pragma once
#include <compare>
#include <tuple>
#include <utility>
#include <vector>

#include "json-schema/object-spec.h"

namespace onpolicy::grammar {

class SchemaRules;

struct ObjectState {
  uint32_t spec = 0;
  bool first = true;
  std::vector<uint32_t> next_rank;  // by group
  std::vector<bool> seen;           // by known key, of those without a group
  uint64_t count = 0;
  uint64_t met = 0;      // demands, a bit each
  SeenSet further = 0;   // further keys that were seen
  SeenSet excluded = 0;  // objects of which what is still to come must differ
  auto operator<=>(const ObjectState&) const = default;
};

class ObjectRules {
 public:
  ObjectRules(RuleContext& context, SchemaRules& rules) : context_(context), rules_(rules), specs_(context) {}

  // What follows the opening brace of an object that is none of `excluded`.
  Symbol Body(const Shape& shape, SeenSet excluded, bool tagged = false);

 private:
  friend class MemberProductions;

  Symbol Object(const ObjectState& state);
  Symbol AfterFurther(const ObjectState& state);
  Symbol AfterOpenKey(FormulaId formula, SeenSet excluded, const ObjectState& next);
  Symbol AfterTaggedKey(FormulaId formula, const ObjectState& next);
  Symbol MemberAfterComma(const ObjectState& state);
  std::vector<SequenceId> Productions(const ObjectState& state, bool is_member);
  bool IsOpen(const ObjectState& state, size_t key) const;
  ObjectState Taken(const ObjectState& state, size_t key) const;
  bool CanClose(const ObjectState& state) const;
  bool CanFinish(const ObjectState& state);
  bool CanDiffer(const ObjectState& state);
  uint64_t LeastMembers(const ObjectState& state);

  RuleContext& context_;
  SchemaRules& rules_;
  ObjectSpecs specs_;
  SymbolMemo<ObjectState> objects_, members_, after_further_;
  SymbolMemo<std::tuple<FormulaId, SeenSet, ObjectState>> after_open_key_;
  SymbolMemo<std::pair<FormulaId, ObjectState>> after_tagged_key_, tagged_members_;
};

}  // namespace onpolicy::grammar
