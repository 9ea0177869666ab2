// A shape of objects -> its keys: known ones in their order, further ones in classes, and which demands each may meet.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "base/limits.h"
#include "json-schema/rule-context.h"

namespace onpolicy::grammar {

using limits::kCountedKeys;

// Demands (a bit each) that a member may meet: always, or with some of its values.
struct Meeting {
  uint64_t always = 0, maybe = 0;
};

struct KnownKey {
  std::string key;
  FormulaId formula;
  NodeId text;         // inside the quotes
  int group = -1;      // keys of one `properties` keep their order; -1: any place
  uint32_t rank = 0;
  bool required = false;
  Meeting meeting = {};
};

struct FurtherKeys {
  NodeId keys;
  FormulaId formula;
  uint64_t count;  // number of keys, capped
  bool open;       // every beginning of a key can go on, so a repeated key is refused at its closing quote
  Meeting meeting = {};
};

struct ObjectSpec {
  std::vector<KnownKey> known;
  KeyNames names;  // of the known keys
  std::vector<FurtherKeys> further;
  std::vector<FormulaId> demands;
  int groups = 0;
  uint64_t min = 0, max = UINT64_MAX;
  bool count_matters = false;
  bool tagged = false;  // members are tagged parameters

  uint64_t AllDemands() const { return (uint64_t{1} << demands.size()) - 1; }
};

class ObjectSpecs {
 public:
  explicit ObjectSpecs(RuleContext& context) : context_(context) {}

  // A number for every distinct shape of objects.
  uint32_t NumberOf(const Shape& shape, bool tagged);
  const ObjectSpec& operator[](uint32_t number) const { return specs_[number]; }
  // A member's formula that also meets demands.
  FormulaId WithDemands(const ObjectSpec& spec, FormulaId formula, uint64_t demands);

 private:
  ObjectSpec Make(const Shape& shape, bool tagged);
  KnownKey Known(const Shape& shape, const ObjectSpec& spec, const std::string& key);
  Meeting MeetingOf(const ObjectSpec& spec, FormulaId formula, uint64_t of_key);
  void AddFurther(const Shape& shape, ObjectSpec* spec);

  RuleContext& context_;
  std::deque<ObjectSpec> specs_;
  SpecIndex index_;
};

}  // namespace onpolicy::grammar
