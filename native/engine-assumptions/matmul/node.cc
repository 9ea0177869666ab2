#include "engine-assumptions/matmul/node.h"

#include <algorithm>
#include <string_view>

#include "engine-assumptions/matmul/experts.h"
#include "engine-assumptions/matmul/team.h"
#include "engine-assumptions/table/names.h"
#include "engine-assumptions/table/nodes.h"

#ifdef ONPOLICY_PRODUCTS

// ggml's abstract class. Its virtual table is defined in this addon.
namespace ggml::cpu {
tensor_traits::~tensor_traits() {}
}  // namespace ggml::cpu

namespace onpolicy::matmul {
namespace {

constexpr int64_t kPiecesPerThread = 8;  // so that threads end at about the same time
constexpr int64_t kManyTokens = 64;      // from here on computing takes longer than reading the weights: twice as many pieces

const Kernels* g_node_kernels = nullptr;

uint8_t* WorkOf(const ggml_compute_params* params) {
  return reinterpret_cast<uint8_t*>(RoundedToVectors(reinterpret_cast<uintptr_t>(params->wdata)));
}

// Lets the call into the engine that plans the node fail, if it has a source or a parameter that is not known: nobody else can read packed
// weights. Models are loaded without packing if a graph has such a node (`HasUnknownMatmul`), so this is a graph of a later context.
void RequireKnown(const ggml_tensor* op) {
  if (IsKnown(op)) return;
  InCallback(
      [&]() -> bool {
        throw Failure("UNSUPPORTED", "this release of the engine multiplies in a way that this library's kernels do not know (" + UnknownPart(op) +
                                         "); load the model with kernels: 'plain'");
      },
      false);
}

// Multiplies each matrix of activations by its matrix of weights, which several may share.
class Matmuls : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int, const ggml_tensor* op, size_t& size) override {
    RequireKnown(op);
    const ggml_tensor* x = op->src[1];
    size = RoundedBytes(*PackedFormat(op->src[0]), x->ne[0], x->ne[1] * x->ne[2] * x->ne[3]) + kLineBytes;
    return true;
  }

  bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
    const PackedMatrix matrix = MatrixOf(op->src[0], 0);
    const ggml_tensor* x = op->src[1];
    auto* rounded = reinterpret_cast<int32_t*>(WorkOf(params));
    const size_t numbers = RoundedBytes(*matrix.format, matrix.width, x->ne[1]) / sizeof(int32_t);  // per matrix of x
    const int64_t thread = params->ith, threads = params->nth;
    Team team(params, op);
    ForEachMatrix(op, [&](int64_t index, int64_t, size_t at, size_t) {
      RoundBlocks(*g_node_kernels, *matrix.format, matrix.width, {static_cast<const char*>(x->data) + at, x->nb[1], x->ne[1]},
                  matrix.blocks() * thread / threads, matrix.blocks() * (thread + 1) / threads,
                  rounded + static_cast<size_t>(index) * numbers);
    });
    team.Wait();
    const int64_t pieces = threads * kPiecesPerThread * (x->ne[1] < kManyTokens ? 1 : 2);
    int64_t piece = std::max<int64_t>(1, matrix.panel_count() / pieces);
    if (piece > 1) piece += piece % 2;  // a tile may have two panels
    for (int64_t i = team.Next(); i * piece < matrix.panel_count(); i = team.Next())
      ForEachMatrix(op, [&](int64_t index, int64_t weights, size_t, size_t to) {
        MultiplyPanels(*g_node_kernels, MatrixOf(op->src[0], weights), rounded + static_cast<size_t>(index) * numbers, x->ne[1],
                       i * piece, std::min(matrix.panel_count(), (i + 1) * piece),
                       {reinterpret_cast<float*>(static_cast<char*>(op->data) + to), static_cast<int64_t>(op->nb[1] / sizeof(float))});
      });
    return true;
  }

 private:
  // Calls `work(index, index of the weights, offset of x, offset of y)`, in bytes.
  template <typename Work>
  static void ForEachMatrix(const ggml_tensor* y, const Work& work) {
    const ggml_tensor *weights = y->src[0], *x = y->src[1];
    const int64_t shared2 = x->ne[2] / weights->ne[2], shared3 = x->ne[3] / weights->ne[3];
    for (int64_t i3 = 0; i3 < x->ne[3]; ++i3)
      for (int64_t i2 = 0; i2 < x->ne[2]; ++i2)
        work(i3 * x->ne[2] + i2, i3 / shared3 * weights->ne[2] + i2 / shared2,
             static_cast<size_t>(i2) * x->nb[2] + static_cast<size_t>(i3) * x->nb[3],
             static_cast<size_t>(i2) * y->nb[2] + static_cast<size_t>(i3) * y->nb[3]);
  }
};

// Multiplies each token by the matrices of its experts.
class ExpertMatmuls : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int threads, const ggml_tensor* op, size_t& size) override {
    RequireKnown(op);
    size = PlanOf(op, threads).work_bytes() + kLineBytes;
    return true;
  }

  bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
    const ExpertPlan plan = PlanOf(op, params->nth);
    uint8_t* work = WorkOf(params);
    Team team(params, op);
    plan.Round(params->ith, work);
    team.Wait();
    plan.Multiply(params->ith, work, [&] { return team.Next(); });
    return true;
  }

 private:
  static ExpertPlan PlanOf(const ggml_tensor* op, int64_t threads) {
    const ggml_tensor *weights = op->src[0], *x = op->src[1], *ids = op->src[2];
    return {*g_node_kernels,
            {MatrixOf(weights, 0), weights->ne[2], ids->ne[1], ids->ne[0], static_cast<const char*>(ids->data), ids->nb[1],
             static_cast<const char*>(x->data), x->nb[2], x->nb[1], x->ne[1], static_cast<float*>(op->data)},
            threads};
  }
};

}  // namespace

const Format* PackedFormat(const ggml_tensor* weights) {
  // A vector that scales a matmul's output. The loader asks for it as if it were multiplied.
  if (std::string_view(weights->name).ends_with(kOutputScale)) return nullptr;
  const ggml_tensor* whole = weights->view_src;
  const bool has_all_rows = !whole || (weights->op == GGML_OP_RESHAPE && weights->ne[0] == whole->ne[0] && weights->ne[1] == whole->ne[1]);
  return has_all_rows && weights->ne[0] % kBlock == 0 ? FormatOf(weights->type) : nullptr;
}

PackedMatrix MatrixOf(const ggml_tensor* weights, int64_t index) {
  const Format* format = PackedFormat(weights);
  const size_t bytes = PackedBytes(*format, weights->ne[0], weights->ne[1]);
  return {format, static_cast<const uint8_t*>(weights->data) + static_cast<size_t>(index) * bytes, weights->ne[0], weights->ne[1]};
}

ggml::cpu::tensor_traits* NodeTraits(const ggml_tensor* node) {
  static Matmuls matmuls;
  static ExpertMatmuls experts;
  if (node->op == GGML_OP_MUL_MAT_ID) return &experts;
  return &matmuls;
}

void SetNodeKernels(const Kernels& kernels) { g_node_kernels = &kernels; }

}  // namespace onpolicy::matmul

#endif
