#include "attention/hook.h"

#include "attention/cell-order.h"
#include "attention/invariance.h"
#include "attention/node-marks.h"
#include "attention/node.h"
#include "attention/self-test.h"
#include "attention/shared-nodes.h"
#include "attention/state-places.h"
#include "matmul/buffer-type.h"
#include "matmul/team.h"

namespace onpolicy::attention {

#ifdef ONPOLICY_ATTENTION

namespace {

constexpr size_t kAlignment = 64;

const Kernels* g_kernels = nullptr;
Installation g_installation;
thread_local bool t_is_wanted = false;
thread_local CellPositions* t_positions = nullptr;
thread_local GraphOrders t_orders;
thread_local GraphCheck* t_check = nullptr;

}  // namespace

// Nodes that are no matmuls of packed weights.
struct CheckedNodes {
  static void See(const ggml_tensor* node) {
    if (!t_check) return;
    const bool is_ours = t_is_wanted && (AttentionOf(node) || kLowRank.takes(node));
    if (node->op == GGML_OP_FLASH_ATTN_EXT && !is_ours) t_check->has_own_attention_ = false;
    if (t_check->variant_.empty()) t_check->variant_ = VariantNode(node, is_ours);
  }
};

namespace {

// What is planned for a node; its mask may be computed by the graph itself.
std::optional<Attention> PlannedAttention(const ggml_tensor* node, int threads) {
  std::optional<Attention> attention = t_is_wanted ? AttentionOf(node) : std::nullopt;
  MarkOf(node) = attention ? kOurs : 0;
  if (!attention) return attention;
  const ggml_tensor *keys = IsRounding(node->src[1]) ? node->src[1]->src[0] : node->src[1], *mask = node->src[3];
  attention->positions = t_positions ? t_positions->Of(keys) : nullptr;
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

// The engine asks for the size of its memory on the thread that has the graph computed, and then computes it on all threads. So the size
// is where a node is taken over, and its mark tells the others.
class Node : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int threads, const ggml_tensor* node, size_t& size) override {
    const std::optional<Attention> attention = PlannedAttention(node, threads);
    for (const ggml_tensor* cells : {node->src[1], node->src[2]})
      if (IsRounding(cells)) MarkOf(cells) = MarkOf(node);
    if (attention) size = Plan(*attention, threads).work_bytes() + kAlignment;
    return attention.has_value();
  }

  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    if (params->ith == 0) t_orders.EndGraph();
    if (MarkOf(node) != kOurs) return false;
    const Attention attention = MarkedAttention(node);
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

// Rounding cells that nobody reads rounded is left out.
class Rounding : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor*, size_t&) override { return false; }
  bool compute_forward(ggml_compute_params*, ggml_tensor* node) override { return MarkOf(node) == kOurs; }
};

// What moves tokens to their positions and cells is the engine's, and seen before it is computed.
class Moving : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    if (t_positions) t_positions->See(node);
    if (node->op == GGML_OP_GET_ROWS) PlanReading(node);
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
    if (t_is_wanted) PlanWriting(node);
    else MarkOf(node) = 0;
    return false;
  }
  bool compute_forward(ggml_compute_params*, ggml_tensor* node) override { return IsLeftOut(node); }
};

// Inputs of convolutions.
class Joining : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* node, size_t&) override {
    if (t_is_wanted) PlanJoining(node);
    else MarkOf(node) = 0;
    return MarkOf(node) == kOurs;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override { return Join(node, params->ith, params->nth); }
};

class SharedNode : public ggml::cpu::tensor_traits {
 public:
  explicit SharedNode(const SharedKind& kind) : kind_(kind) {}

  bool work_size(int threads, const ggml_tensor* node, size_t& size) override {
    MarkOf(node) = t_is_wanted ? kOurs : 0;
    if (node->op == GGML_OP_GATED_DELTA_NET) PlanRule(node);
    if (t_is_wanted) size = static_cast<size_t>(threads) * kind_.thread_bytes(node);
    return t_is_wanted;
  }

  bool compute_forward(ggml_compute_params* params, ggml_tensor* node) override {
    if (MarkOf(node) != kOurs) return false;
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
  if (node->op == GGML_OP_FLASH_ATTN_EXT) return &attention;
  if (kLowRank.takes(node)) return &low_rank;
  if (kRecurrent.takes(node)) return &recurrent;
  if (node->op == GGML_OP_GET_ROWS || node->op == GGML_OP_ROPE || node->op == GGML_OP_SET_ROWS) return &moving;
  if (IsRounding(node)) return &rounding;
  if (node->op == GGML_OP_CONCAT) return &joining;
  return node->op == GGML_OP_CPY ? &writing : nullptr;
}

}  // namespace

const Installation& Install(ggml_backend_dev_t cpu) {
  g_kernels = BestKernels();
  if (!g_kernels) return g_installation;
  matmul::SetOperations(TraitsOf);
  g_installation.problem = SelfTestProblem(cpu);
  if (g_installation.problem.empty()) g_installation.kernels = g_kernels->name;
  else matmul::SetOperations(nullptr);
  return g_installation;
}

const Installation& Installed() { return g_installation; }

Scope::Scope(bool is_wanted, CellPositions* positions) : outer_(t_is_wanted), outer_positions_(t_positions) {
  t_is_wanted = is_wanted;
  t_positions = positions;
  t_orders.EndGraph();
}
Scope::~Scope() {
  t_is_wanted = outer_;
  t_positions = outer_positions_;
}

GraphCheck::GraphCheck() : has_own_attention_(g_installation.kernels != nullptr) {
  if (!has_own_attention_) variant_ = "attention";
  t_check = this;
}
GraphCheck::~GraphCheck() { t_check = nullptr; }

#else

const Installation& Install(ggml_backend_dev_t) { return Installed(); }

const Installation& Installed() {
  static const Installation none;
  return none;
}

Scope::Scope(bool, CellPositions*) : outer_(false), outer_positions_(nullptr) {}
Scope::~Scope() {}
GraphCheck::GraphCheck() : variant_("attention"), has_own_attention_(false) {}
GraphCheck::~GraphCheck() {}

#endif

}  // namespace onpolicy::attention
