// A shape of objects -> its keys: known ones in their order, further ones in classes, and the demands that each may meet.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "grammar/json-schema/key-automaton.h"
#include "grammar/json-schema/rule-context.h"

namespace onpolicy::grammar {

using limits::kCountedKeys;

// Demands (one bit each) that a member meets: with any value, or with some values.
struct Meeting {
  uint64_t always = 0, maybe = 0;
};

struct KnownKey {
  std::string key;
  FormulaId formula;
  NodeId text;         // inside the quotes
  int group = -1;      // keys of one `properties` keep their order; -1: any place
  uint32_t seen = 0;   // number in sets of the keys without a group that can have a value
  uint32_t rank = 0;
  bool required = false;
  Meeting meeting = {};
};

struct FurtherKeys {
  NodeId keys;
  FormulaId formula;
  uint64_t count;  // number of keys, capped
  bool open;       // every prefix of a key can continue, so that a repeated key is rejected at its closing quote
  Meeting meeting = {};
};

struct ObjectSpec {
  std::vector<KnownKey> known;
  KeyNames names;  // names of the known keys
  std::vector<FurtherKeys> further;
  std::vector<FormulaId> demands;
  // Number of keys of a group from a rank on that can have a value, and of the required ones among them.
  struct RankCount {
    uint64_t open = 0, owed = 0;
  };
  std::vector<std::vector<RankCount>> from_rank;  // by group and rank, one more than there are ranks
  // Position of a group's key, and of the next required one.
  struct Place {
    uint32_t index = kUnlimited, required = kUnlimited;  // index of this rank's key; rank of the next required key that is possible
  };
  std::vector<std::vector<Place>> places;         // by group and rank, one more than there are ranks
  std::vector<uint32_t> loose;                    // known keys without a group that can have a value
  std::unique_ptr<KeySets> loose_sets;            // sets of them: the required ones have the first numbers
  RankCount loose_count;
  bool lacks_required = false;                    // a required key can have no value
  int groups = 0;
  uint64_t min = 0, max = UINT64_MAX;
  bool count_matters = false;
  bool tagged = false;  // members are tagged parameters
  // Automata of the keys if there are many: by group, and of the keys without a group, those that are required first. A null pointer: none.
  bool has_many = false;
  std::vector<OrderedKeys*> many;
  LooseKeys *many_required = nullptr, *many_optional = nullptr;

  uint64_t AllDemands() const { return (uint64_t{1} << demands.size()) - 1; }
};

class ObjectSpecs {
 public:
  explicit ObjectSpecs(RuleContext& context) : context_(context) {}

  // Returns a number for every distinct shape of objects.
  uint32_t NumberOf(const Shape& shape, bool tagged);
  const ObjectSpec& operator[](uint32_t number) const { return specs_[number]; }
  // Returns a member's formula together with demands.
  FormulaId WithDemands(const ObjectSpec& spec, FormulaId formula, uint64_t demands);

 private:
  ObjectSpec Make(const Shape& shape, bool tagged);
  static void CountRanks(ObjectSpec* spec);
  // Gives numbers to the keys without a group.
  static void CountLoose(ObjectSpec* spec);
  // Makes automata if there are many keys, and their groups and the sets of them decide which may come next.
  void FindMany(ObjectSpec* spec);
  template <typename Made, typename... Given>
  Made* KeysOf(std::vector<KeyAutomaton::Key> keys, Given&&... given);
  KnownKey Known(const Shape& shape, const ObjectSpec& spec, const std::string& key);
  Meeting MeetingOf(const ObjectSpec& spec, FormulaId formula, uint64_t of_key);
  void AddFurther(const Shape& shape, ObjectSpec* spec);

  RuleContext& context_;
  std::deque<ObjectSpec> specs_;
  SpecIndex index_;
};

}  // namespace onpolicy::grammar
