#include "engine-assumptions/first-pass.h"

#include "engine-assumptions/table/assumptions.h"

namespace onpolicy {

void FirstPass::See(const attention::NodeCounts& counts, const attention::CellPositions* positions, bool has_adapter) {
  if (has_adapter && !has_seen_adapter_) {
    has_seen_adapter_ = true;
    Check(Assumed::kAdapterNames, counts.factors > 0 ? "" : "no matmul of a pass with an adapter has a factor by its name");
  }
  if (is_done_) return;
  Confirm(Assumed::kNodes);
  attention_ = counts.own_attention > 0 ? attention::Installed() : "plain";
  if (positions && counts.own_attention > 0) attention::CheckPositions(counts, *positions);
  is_done_ = counts.rules == counts.rules_in_place || counts.rules_in_place > 0 || ++passes_ == kPasses;
  if (!is_done_ || counts.rules == 0) return;
  Check(Assumed::kStatePlaces, counts.rules_in_place > 0 ? "" : "the states of recurrent layers are read or written in an unknown way");
}

}  // namespace onpolicy
