// Expressions -> the states of a lazy automaton. A state's successors are its derivatives, made on first use: counted repetition costs only
// the counts that are reached, and And and Not need no product construction. A pool belongs to one Constraint and is not locked.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "grammar/regex/search.h"

namespace onpolicy::grammar {

constexpr NodeId kAcceptBit = 0x80000000u;  // in rows only: an alternative may end in the state
constexpr NodeId kUnasked = kAcceptBit;     // in rows only: not computed

struct StateRow {
  NodeId next[256];
  ByteSet first;
  bool has_first = false;
  bool is_cut = false;  // no search could decide whether some byte leads anywhere
};

class RegexPool : public Expressions {
 public:
  // Creates a pool with the expressions that many schemas use.
  RegexPool();
  // Returns the tags of the alternatives that may end here; tag 0 for an untagged expression.
  const std::vector<uint32_t>& AcceptedTags(NodeId id);
  bool IsAccepting(NodeId id) { return !AcceptedTags(id).empty(); }
  // Returns the state after `byte`, or kNothing if no text of the language continues so.
  NodeId Next(NodeId state, uint8_t byte) { return Entry(state, byte) & ~kAcceptBit; }
  // Returns the same with kAcceptBit.
  NodeId Entry(NodeId state, uint8_t byte) {
    const NodeId known = Row(state)[byte];
    return known == kUnasked ? Compute(state, byte) : known;
  }
  // Returns the entries by byte; kUnasked for bytes for which `Entry` was not called yet. The pointer stays valid.
  const NodeId* Row(NodeId state) {
    const StateRow* const row = row_of_[state];
    return row ? row->next : MakeRow(state)->next;
  }
  // Returns the bytes with a successor; all bytes once the work limit of the step is reached.
  const ByteSet& FirstBytes(NodeId state);
  // Returns true if any byte has a successor.
  bool HasNext(NodeId state);
  // Returns false if the language is empty. If no search could decide that, returns true if a text can begin.
  bool IsLive(NodeId id) { return search_.IsLive(id) || (id != kNothing && !search_.IsKnown(id) && CanBegin(id)); }
  bool Matches(NodeId id, std::string_view text);
  // Returns the number of texts in the language, or `cap` if there are at least that many. If the work limit is reached: `cap`, or with
  // `is_sure` the number found so far.
  uint64_t CountTexts(NodeId id, uint64_t cap, bool is_sure = false) { return search_.CountTexts(id, cap, is_sure); }

  // Returns false once a derivative has dropped alternatives, or a search of a step found no answer. Results then depend on what else this
  // pool has computed, so that another pool may give others for the same expression.
  bool IsExact() const { return !budget_.was_cut(Phase::kDerivative) && !budget_.was_cut(Phase::kSearch); }
  // Ends the compilation: from now on work is limited by steps.
  void Bind();
  // Begins one call of a bound constraint. Once its work limit is reached, new states that need a search count as dead.
  void BeginStep(uint64_t work);

 private:
  struct Bare {};
  explicit RegexPool(Bare) {}
  // Returns the pool that every other pool begins with. It must not change.
  static const RegexPool& Common();
  StateRow* MakeRow(NodeId state);
  NodeId Compute(NodeId state, uint8_t byte);
  bool CanBegin(NodeId id);
  void Unstick(NodeId state, StateRow* row);

  Derivatives derivatives_{*this};
  LanguageSearch search_{*this, derivatives_};
  PagedList<std::unique_ptr<std::vector<uint32_t>>> tags_;  // by node
  static constexpr size_t kRowsPerBlock = 16;
  std::vector<std::unique_ptr<StateRow[]>> rows_;  // allocated in blocks
  size_t row_count_ = 0;
};

}  // namespace onpolicy::grammar
