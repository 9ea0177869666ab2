#include "engine-assumptions/table/assumptions.h"

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>

#include "base/status.h"

namespace onpolicy {
namespace {

constexpr Assumption kAssumptions[] = {
    {"defaults", "the engine's default parameters have the values that they had when this library was built", Checked::kOpening,
     "nothing runs"},
    {"trainingFunctions", "the libraries export the functions of graphs and files that only training calls", Checked::kOpening,
     "training and merging are off"},
    {"precision", "a function sets the precision of a matmul", Checked::kOpening,
     "training on a GPU computes matmuls in the precision that the engine chooses"},
    {"headFunctions", "llama_set_embeddings_nextn, llama_get_embeddings_nextn_ith and llama_set_nextn_layer_offset are exported",
     Checked::kOpening, "models do not draft with their own heads"},
    {"layerFunctions", "llama_set_embeddings_layer_inp and llama_get_embeddings_layer_inp are exported", Checked::kOpening,
     "draft models that read states of layers (EAGLE) are off"},
    {"sequences", "a context has 256 sequence numbers", Checked::kOpening, "caches of sliding windows keep all cells"},
    {"bufferTable", "buffers of the CPU are made by a function in a table that can be written", Checked::kOpening,
     "large buffers come from the engine's allocator"},
    {"weightTypes", "the CPU backend has the extra buffer type CPU_REPACK, whose object asks for every node, and at most AMX beside it", Checked::kOpening,
     "the engine computes all matmuls and attention"},
    {"matmulResults", "matmuls in this library's buffer type agree with the engine's", Checked::kOpening,
     "the engine computes all matmuls and attention"},
    {"marks", "the last parameters of a node are unused", Checked::kOpening,
     "the engine computes attention, recurrent layers and adapters"},
    {"attentionResults", "attention, delta nets and convolutions run in this library's kernels, and agree with the engine's",
     Checked::kOpening, "the engine computes attention, recurrent layers and adapters"},
    {"nodes", "a node has no sources and no parameters but those that this library knows", Checked::kFirstPass,
     "the engine computes such nodes, and all of a model whose packed weights they multiply"},
    {"statePlaces", "states are gathered by GET_ROWS, used through a view, and written back by CPY", Checked::kFirstPass,
     "states of recurrent layers are copied out of the cache and back"},
    {"cellPositions", "ROPE of a graph has the positions of its tokens, and SET_ROWS then writes cells with numbers of 64 bits",
     Checked::kFirstPass, "attention reads the cells of a pool in the order in which they lie, and deterministic needs kvUnified: false"},
    {"cacheBytes", "the cache of a context takes the bytes that follow from the header of the model's file", Checked::kUse,
     "nothing is off: the memory that is planned for a model is not what it takes"},
    {"adapterNames", "the factors of an adapter end with .lora_a and .lora_b", Checked::kUse,
     "the engine multiplies with them, and deterministic refuses adapters"},
    {"expertNames", "the choice of experts is named ffn_moe_topk-N, and tokens are computed in a known order", Checked::kUse,
     "return_routed_experts is refused"},
    {"pooledState", "the states that the output layer reads are named result_norm", Checked::kUse,
     "the engine pools embeddings of the last token"},
    {"formulas", "the trainer's log-probabilities of a few tokens are those of the engine", Checked::kUse,
     "nothing is off: training and sampling differ"},
    {"decoder", "the decoder was built for a release of the layout that this library was built for", Checked::kUse,
     "the decoder is built again, or refused"},
};
static_assert(std::size(kAssumptions) == static_cast<size_t>(Assumed::kCount));

constexpr auto kRows = static_cast<size_t>(Assumed::kCount);

std::mutex g_findings_mutex;
Finding g_findings[kRows];
std::atomic<bool> g_is_broken[kRows];
std::map<int, BreakListener> g_listeners;
std::vector<std::string> g_untold;  // lines that no listener has got
int g_next_listener = 1;

size_t RowIndex(Assumed row) { return static_cast<size_t>(row); }

void TellBreak(const std::string& line) {
  if (g_listeners.empty()) g_untold.push_back(line);
  else g_listeners.begin()->second(line);
}

}  // namespace

const Assumption& TextOf(Assumed row) { return kAssumptions[RowIndex(row)]; }

void Break(Assumed row, const std::string& problem) {
  if (g_is_broken[RowIndex(row)].exchange(true)) return;
  const std::lock_guard<std::mutex> lock(g_findings_mutex);
  g_findings[RowIndex(row)] = {Finding::kBroken, problem};
  TellBreak(problem + "; " + TextOf(row).without);
}

void Confirm(Assumed row) {
  if (g_is_broken[RowIndex(row)]) return;
  const std::lock_guard<std::mutex> lock(g_findings_mutex);
  if (g_findings[RowIndex(row)].state == Finding::kUnknown) g_findings[RowIndex(row)].state = Finding::kHolds;
}

bool Check(Assumed row, const std::string& problem) {
  if (problem.empty()) Confirm(row);
  else Break(row, problem);
  return problem.empty();
}

bool IsBroken(Assumed row) { return g_is_broken[RowIndex(row)]; }

void Require(Assumed row) {
  if (!IsBroken(row)) return;
  throw Failure("UNSUPPORTED", std::string(TextOf(row).without) + " with this release of the engine, as " + FindingOf(row).problem);
}

Finding FindingOf(Assumed row) {
  const std::lock_guard<std::mutex> lock(g_findings_mutex);
  return g_findings[RowIndex(row)];
}

int AddBreakListener(BreakListener listener) {
  const std::lock_guard<std::mutex> lock(g_findings_mutex);
  for (const std::string& line : g_untold) listener(line);
  g_untold.clear();
  g_listeners.emplace(g_next_listener, std::move(listener));
  return g_next_listener++;
}

void RemoveBreakListener(int id) {
  const std::lock_guard<std::mutex> lock(g_findings_mutex);
  g_listeners.erase(id);
}

}  // namespace onpolicy
