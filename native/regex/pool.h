// Expressions -> the states of a lazy automaton. A state's successors are its derivatives, made when first asked for: counted
// repetition costs only the counts that are reached, and And and Not need no product construction.
// A pool belongs to one Constraint and is not locked.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "regex/derivatives.h"
#include "regex/search.h"

namespace onpolicy::grammar {

constexpr NodeId kAcceptBit = 0x80000000u;  // in rows only: an alternative may end there
constexpr NodeId kUnasked = kAcceptBit;     // in rows only: not computed

struct StateRow {
  NodeId next[256];
  ByteSet first;
  bool has_first = false;
  bool is_cut = false;  // no search could tell whether some byte leads anywhere
};

class RegexPool : public Expressions {
 public:
  // With the expressions that many schemas use.
  RegexPool();
  // Tags of the alternatives that may end here; tag 0 for an untagged expression.
  const std::vector<uint32_t>& AcceptedTags(NodeId id);
  bool IsAccepting(NodeId id) { return !AcceptedTags(id).empty(); }
  // The state after `byte`; kNothing when no text of the language continues so.
  NodeId Next(NodeId state, uint8_t byte) { return Entry(state, byte) & ~kAcceptBit; }
  // The same with kAcceptBit.
  NodeId Entry(NodeId state, uint8_t byte) {
    const NodeId known = Row(state)[byte];
    return known == kUnasked ? Compute(state, byte) : known;
  }
  // Entries by byte; kUnasked where `Entry` was not called yet. Stays where it is.
  const NodeId* Row(NodeId state) {
    const StateRow* const row = row_of_[state];
    return row ? row->next : MakeRow(state)->next;
  }
  // Bytes with a successor; all bytes once the step is spent.
  const ByteSet& FirstBytes(NodeId state);
  // Whether any byte has a successor.
  bool HasNext(NodeId state);
  // False when the language is empty. Where no search could decide that, a text can begin all the same.
  bool IsLive(NodeId id) { return search_.IsLive(id) || (id != kNothing && !search_.IsKnown(id) && CanBegin(id)); }
  bool Matches(NodeId id, std::string_view text);
  // Number of texts in the language, or `cap` when there are that many or more. Where the work is spent: `cap`, or with
  // `is_sure` the number found so far.
  uint64_t CountTexts(NodeId id, uint64_t cap, bool is_sure = false) { return search_.CountTexts(id, cap, is_sure); }

  // False once a derivative lost alternatives, or a search of a step found no answer. That depends on what else this pool
  // has computed, so another pool may answer otherwise for the same expression.
  bool IsExact() const { return !budget_.was_cut(Phase::kDerivative) && !budget_.was_cut(Phase::kSearch); }
  // The constraint is compiled: from now on work is bounded by steps.
  void Bind();
  // Begins one call of a bound constraint. Once it is spent, new states that need a search count as dead.
  void BeginStep(uint64_t work);

 private:
  struct Bare {};
  explicit RegexPool(Bare) {}
  // What every other pool begins with; stays as it is.
  static const RegexPool& Common();
  StateRow* MakeRow(NodeId state);
  NodeId Compute(NodeId state, uint8_t byte);
  bool CanBegin(NodeId id);
  void Unstick(NodeId state, StateRow* row);

  EdgeTable edges_{*this};
  LanguageSearch search_{*this, edges_};
  Derivatives derivatives_{*this, edges_};
  PagedList<std::unique_ptr<std::vector<uint32_t>>> tags_;  // by node
  static constexpr size_t kRowsPerBlock = 16;
  std::vector<std::unique_ptr<StateRow[]>> rows_;  // blocks of them
  size_t row_count_ = 0;
};

}  // namespace onpolicy::grammar
