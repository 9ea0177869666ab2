#include "engine-assumptions/attention/hook.h"

#include "engine-assumptions/attention/invariance.h"
#include "engine-assumptions/attention/node.h"
#include "engine-assumptions/attention/self-test.h"
#include "engine-assumptions/attention/shared-nodes.h"
#include "engine-assumptions/attention/state-places.h"
#include "engine-assumptions/matmul/buffer-type.h"
#include "engine-assumptions/matmul/team.h"
#include "engine-assumptions/table/assumptions.h"
#include "engine-assumptions/table/node-marks.h"
#include "engine-assumptions/table/nodes.h"
#include "kernels/attention/cell-order.h"

namespace onpolicy::attention {

#ifdef ONPOLICY_ATTENTION

namespace {

constexpr size_t kAlignment = 64;

const Kernels* g_kernels = nullptr;
const char* g_installed = nullptr;
thread_local bool t_is_wanted = false;
thread_local CellPositions* t_positions = nullptr;
thread_local NodeCounts* t_counts = nullptr;
thread_local GraphOrders t_orders;
thread_local GraphCheck* t_check = nullptr;

}  // namespace

// Checks the nodes other than matmuls of packed weights.
struct CheckedNodes {
  static void See(const ggml_tensor* node) {
    if (!t_check) return;
    const bool is_ours = t_is_wanted && (AttentionOf(node) || kLowRank.takes(node));
    if (node->op == GGML_OP_FLASH_ATTN_EXT && !is_ours) t_check->has_own_attention_ = false;
    if (t_check->variant_.empty()) t_check->variant_ = VariantNode(node, is_ours);
  }
};

namespace {

// Returns the keys as they lie in the cache.
const ggml_tensor* CellsOf(const ggml_tensor* node) { return IsRounding(node->src[1]) ? node->src[1]->src[0] : node->src[1]; }

// Plans attention for a node and returns the plan, or nothing if ggml computes it. The mask may itself be computed by the graph; then the
// cells have no planned order.
std::optional<Attention> PlannedAttention(const ggml_tensor* node, int threads) {
  std::optional<Attention> attention = t_is_wanted ? AttentionOf(node) : std::nullopt;
  if (UnknownPart(node).empty()) Mark(node, attention.has_value());
  if (!attention) return attention;
  const ggml_tensor* mask = node->src[3];
  attention->positions = t_positions ? t_positions->Of(CellsOf(node)) : nullptr;
  const bool is_known = attention->mask && mask->op == GGML_OP_NONE;
  attention->orders = is_known ? t_orders.Of(*attention, *g_kernels, threads) : nullptr;
  SetPointer(node, attention->orders);
  return attention;
}

Attention MarkedAttention(const ggml_tensor* node) {
  Attention attention = *AttentionOf(node);
  attention.orders = static_cast<const CellOrders*>(PointerOf(node));
  return attention;
}

// The engine asks for the size of a node's memory on the thread that starts the graph, and then computes the node on all threads. So
// work_size decides whether the node is taken over, and its mark tells the other threads.
class Node : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int threads, const ggml_tensor* node, size_t& size) override {
    const std::optional<Attention> attention = PlannedAttention(node, threads);
    for (const ggml_tensor* cells : {node->src[1], node->src[2]})
      if (IsRounding(cells)) Mark(cells, attention.has_value());
    if (attention) size = Plan(*attention, threads).work_bytes() + kAlignment;
    return attention.has_value();
  }

  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    if (params->ith == 0) t_orders.EndGraph();
    const bool is_counted = params->ith == 0 && t_counts;
    if (is_counted) ++t_counts->attention;
    if (!IsMarked(node)) return false;
    const Attention attention = MarkedAttention(node);
    if (is_counted) ++t_counts->own_attention;
    if (is_counted && t_positions && t_positions->Of(CellsOf(node))) ++t_counts->ordered;
    const Plan plan(attention, params->nth);
    const auto address = reinterpret_cast<uintptr_t>(params->wdata);
    auto* work = reinterpret_cast<uint8_t*>((address + kAlignment - 1) / kAlignment * kAlignment);
    matmul::Team team(params, node);
    team.Wait();
    for (int64_t task = team.Next(); task < plan.tasks(); task = team.Next()) plan.Run(*g_kernels, task, params->ith, work);
    if (plan.merges() == 0) return true;
    team.Wait();
    for (int64_t merge = params->ith; merge < plan.merges(); merge += params->nth) plan.Merge(merge, work);
    return true;
  }
};

// Skips rounding the cells if attention reads them unrounded.
class Rounding : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor*, size_t&) override { return false; }
  bool compute_forward(ggml_compute_params*, ggml_tensor* node) override { return IsMarked(node); }
};

// Nodes that move tokens to their positions and cells. The engine computes them; they are only recorded before.
class Moving : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    if (t_positions) t_positions->See(node);
    if (node->op == GGML_OP_GET_ROWS && IsKnown(node)) PlanReading(node);
    return false;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    return node->op == GGML_OP_GET_ROWS && Read(node, params->ith);
  }
};

// Copies of recurrent states into the cache.
class Writing : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    if (!IsKnown(node)) return false;
    if (t_is_wanted) PlanWriting(node);
    else Mark(node, false);
    return false;
  }
  bool compute_forward(ggml_compute_params*, ggml_tensor* node) override { return IsLeftOut(node); }
};

// Inputs of convolutions.
class Joining : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    if (!IsKnown(node)) return false;
    if (t_is_wanted) PlanJoining(node);
    else Mark(node, false);
    return IsMarked(node);
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override { return Join(node, params->ith, params->nth); }
};

class SharedNode : public ggml::cpu::tensor_traits {
 public:
  explicit SharedNode(const SharedKind& kind) : kind_(kind) {}

  bool work_size(int threads, const ggml_tensor* node, size_t& size) override {
    if (!IsKnown(node)) return false;
    Mark(node, t_is_wanted);
    if (node->op == GGML_OP_GATED_DELTA_NET) PlanRule(node);
    if (t_is_wanted) size = static_cast<size_t>(threads) * kind_.thread_bytes(node);
    return t_is_wanted;
  }

  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    if (!IsMarked(node)) return false;
    if (params->ith == 0 && t_counts && node->op == GGML_OP_GATED_DELTA_NET) {
      ++t_counts->rules;
      if (PointerOf(node)) ++t_counts->rules_in_place;
    }
    auto* memory = static_cast<uint8_t*>(params->wdata) + static_cast<size_t>(params->ith) * kind_.thread_bytes(node);
    kind_.compute(*g_kernels, node, params->ith, params->nth, reinterpret_cast<float*>(memory));
    return true;
  }

 private:
  const SharedKind& kind_;
};

ggml::cpu::tensor_traits* TraitsOf(const ggml_tensor* node) {
  static Node attention;
  static Rounding rounding;
  static SharedNode low_rank(kLowRank), recurrent(kRecurrent);
  static Moving moving;
  static Writing writing;
  static Joining joining;
  CheckedNodes::See(node);
  if (t_counts && HasFactor(node)) ++t_counts->factors;
  if (node->op == GGML_OP_FLASH_ATTN_EXT) return &attention;
  if (kLowRank.takes(node)) return &low_rank;
  if (kRecurrent.takes(node)) return &recurrent;
  if (node->op == GGML_OP_GET_ROWS || node->op == GGML_OP_ROPE || node->op == GGML_OP_SET_ROWS) return &moving;
  if (IsRounding(node)) return &rounding;
  if (node->op == GGML_OP_CONCAT) return &joining;
  return node->op == GGML_OP_CPY ? &writing : nullptr;
}

}  // namespace

void Install(ggml_backend_dev_t cpu) {
  g_kernels = BestKernels();
  if (!g_kernels || !Check(Assumed::kMarks, UsedMark())) return;
  matmul::SetOperations(TraitsOf);
  if (Check(Assumed::kAttentionResults, SelfTestProblem(cpu))) g_installed = g_kernels->name;
  else matmul::SetOperations(nullptr);
}

const char* Installed() { return g_installed; }

Scope::Scope(bool is_wanted, CellPositions* positions, NodeCounts* counts)
    : outer_(t_is_wanted), outer_positions_(t_positions), outer_counts_(t_counts) {
  t_is_wanted = is_wanted;
  t_positions = positions;
  t_counts = counts;
  t_orders.EndGraph();
}
Scope::~Scope() {
  t_is_wanted = outer_;
  t_positions = outer_positions_;
  t_counts = outer_counts_;
}

GraphCheck::GraphCheck() : has_own_attention_(g_installed != nullptr) {
  if (!has_own_attention_) variant_ = "attention";
  t_check = this;
}
GraphCheck::~GraphCheck() { t_check = nullptr; }

#else

void Install(ggml_backend_dev_t) {}
const char* Installed() { return nullptr; }

Scope::Scope(bool, CellPositions*, NodeCounts*) : outer_(false), outer_positions_(nullptr), outer_counts_(nullptr) {}
Scope::~Scope() {}
GraphCheck::GraphCheck() : variant_("attention"), has_own_attention_(false) {}
GraphCheck::~GraphCheck() {}

#endif

void CheckPositions(const NodeCounts& counts, const CellPositions& positions) {
  if (!positions.has_rotations()) return;
  Check(Assumed::kCellPositions, counts.ordered > 0 ? "" : "the positions of cells are unknown, though a graph rotates by them");
}

}  // namespace onpolicy::attention
