// Everything that this library assumes of the engine beyond its documented interface: one row each, with what is turned off where it does
// not hold. Checks report here; JavaScript reads the table for `stats().engine`.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace onpolicy {

// The moment at which an assumption is checked.
enum class Checked {
  kOpening,    // when the libraries are opened
  kFirstPass,  // when a model is loaded, or first computes
  kUse,        // when the feature is used
};

// The rows, in the order of kAssumptions.
enum class Assumed {
  kDefaults,
  kTrainingFunctions,
  kPrecision,
  kHeadFunctions,
  kLayerFunctions,
  kSequences,
  kBufferTable,
  kWeightTypes,
  kMatmulResults,
  kMarks,
  kAttentionResults,
  kNodes,
  kStatePlaces,
  kCellPositions,
  kCacheBytes,
  kAdapterNames,
  kExpertNames,
  kPooledState,
  kFormulas,
  kDecoder,
  kCount,
};

struct Assumption {
  const char* name;
  const char* text;  // what is assumed
  Checked checked;
  const char* without;  // what is off, or different, where it does not hold
};

const Assumption& TextOf(Assumed row);

// Records that an assumption does not hold. The first problem of a row is kept, and all listeners get it as one line.
void Break(Assumed row, const std::string& problem);
// Records that an assumption holds, unless it is broken.
void Confirm(Assumed row);
// Records a check: empty text means that it holds. Returns true then.
bool Check(Assumed row, const std::string& problem);

bool IsBroken(Assumed row);
// Throws UNSUPPORTED with what is off and why, if the assumption does not hold.
void Require(Assumed row);

// The result of a row's check.
struct Finding {
  enum { kUnknown, kHolds, kBroken } state = kUnknown;
  std::string problem;  // of a broken one
};
Finding FindingOf(Assumed row);

// The first listener gets one line for each broken row, those of rows that broke before it came too. It may be called on any thread.
using BreakListener = std::function<void(const std::string& line)>;
int AddBreakListener(BreakListener listener);
void RemoveBreakListener(int id);

}  // namespace onpolicy
