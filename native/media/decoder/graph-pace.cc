#include "media/decoder/graph-pace.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace onpolicy {
namespace {

// Cost of an operation on one number, in multiplications of a matmul. Both costs are mostly reads of memory.
constexpr double kWorkOfElement = 50;
// Cost of a multiplication of fused attention, whose CPU kernel works row by row.
constexpr double kWorkOfAttention = 8;
// Minimum number of elements of a result before which the encode may pause.
constexpr double kLargeResult = 4e6;
// The rows of a piece are a multiple of this, because kernels take other paths for few rows, which round differently.
constexpr int64_t kRowBlock = 64;

double Elements(const ggml_tensor* tensor) {
  double count = 1;
  for (const int64_t length : tensor->ne) count *= static_cast<double>(length);
  return count;
}

// Returns the cost of an operation, or 0 if it is too small to pause before it.
double WorkOf(const ggml_tensor* result) {
  if (result->op == GGML_OP_RESHAPE || result->op == GGML_OP_VIEW || result->op == GGML_OP_PERMUTE ||
      result->op == GGML_OP_TRANSPOSE)
    return 0;
  if (result->op == GGML_OP_MUL_MAT) return Elements(result) * static_cast<double>(result->src[0]->ne[0]);
  if (result->op == GGML_OP_FLASH_ATTN_EXT)
    return kWorkOfAttention * 2 * Elements(result->src[0]) * static_cast<double>(result->src[1]->ne[1]);
  const double elements = Elements(result);
  return elements < kLargeResult ? 0 : kWorkOfElement * elements;
}

// Returns the dimension along which a result can be split into rows, or -1 if it cannot be split.
int RowDimension(const ggml_tensor* result) {
  if (result->op == GGML_OP_MUL_MAT) return 1;
  if (result->op == GGML_OP_FLASH_ATTN_EXT && result->ne[3] == 1) return 2;
  return -1;
}

bool IsInMemory(const ggml_tensor* tensor) {
  return !tensor || (tensor->data && tensor->buffer && ggml_backend_buffer_is_host(tensor->buffer));
}

bool CanCut(const ggml_tensor* result) {
  if (RowDimension(result) < 0 || !IsInMemory(result)) return false;
  return std::all_of(std::begin(result->src), std::end(result->src), IsInMemory);
}

// Returns a tensor on the same memory without its operation, so that a graph with it does not compute it again.
ggml_tensor* Leaf(ggml_context* context, const ggml_tensor* tensor) {
  if (!tensor) return nullptr;
  ggml_tensor* leaf = ggml_new_tensor(context, tensor->type, GGML_MAX_DIMS, tensor->ne);
  std::copy(std::begin(tensor->nb), std::end(tensor->nb), leaf->nb);
  leaf->buffer = tensor->buffer;
  leaf->data = tensor->data;
  leaf->extra = tensor->extra;
  return leaf;
}

void Cut(ggml_tensor* tensor, int dimension, int64_t first, int64_t rows) {
  tensor->data = static_cast<char*>(tensor->data) + static_cast<size_t>(first) * tensor->nb[dimension];
  tensor->ne[dimension] = rows;
}

ggml_backend_t OpenProcessor(int32_t threads) {
  ggml_backend_t backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  if (!backend) return nullptr;
  const ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
  using SetThreads = void (*)(ggml_backend_t, int);
  if (void* set = ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads"))
    reinterpret_cast<SetThreads>(set)(backend, threads);
  return backend;
}

}  // namespace

GraphPace::~GraphPace() {
  if (backend_) ggml_backend_free(backend_);
}

bool GraphPace::Pause(double work) {
  if (!is_aborted_) is_aborted_ = !pace_.pause(work);
  return !is_aborted_;
}

bool GraphPace::Before(ggml_tensor* result) {
  const double work = WorkOf(result);
  const double longest = pace_.longest_work();
  wants_all_ = std::isfinite(longest) && (wants_all_ || work > longest);
  const bool is_done = work > longest && !has_pending_ && !is_aborted_ && CanCut(result) &&
                       ComputeInPieces(result, work, static_cast<int64_t>(std::ceil(work / longest)));
  if (work > 0 && !is_done) Pause(work);
  has_pending_ = work == 0 && !wants_all_;
  return !has_pending_;
}

bool GraphPace::ComputeInPieces(ggml_tensor* result, double work, int64_t pieces) {
  const int64_t rows = result->ne[RowDimension(result)];
  const int64_t step = std::max<int64_t>(1, rows / kRowBlock / pieces) * kRowBlock;
  for (int64_t first = 0, count = 0; first < rows; first += count) {
    count = rows - first < step + kRowBlock ? rows - first : step;
    if (!Pause(work * static_cast<double>(count) / static_cast<double>(rows)) || !ComputePiece(result, first, count))
      return false;
  }
  result->op = GGML_OP_NONE;
  return true;
}

bool GraphPace::ComputePiece(const ggml_tensor* result, int64_t first, int64_t rows) {
  if (!backend_) backend_ = OpenProcessor(threads_);
  if (!backend_) return false;
  constexpr size_t kTensors = GGML_MAX_SRC + 1;
  const ggml_init_params params{kTensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(kTensors, false), nullptr, true};
  const std::unique_ptr<ggml_context, decltype(&ggml_free)> context(ggml_init(params), ggml_free);
  ggml_tensor* piece = Leaf(context.get(), result);
  Cut(piece, RowDimension(result), first, rows);
  piece->op = result->op;
  piece->flags = result->flags;
  std::copy(std::begin(result->op_params), std::end(result->op_params), piece->op_params);
  for (int i = 0; i < GGML_MAX_SRC; ++i) piece->src[i] = Leaf(context.get(), result->src[i]);
  const bool is_product = result->op == GGML_OP_MUL_MAT;
  Cut(piece->src[is_product ? 1 : 0], 1, first, rows);
  if (!is_product && piece->src[3]) Cut(piece->src[3], 1, first, rows);  // the mask
  ggml_cgraph* graph = ggml_new_graph_custom(context.get(), kTensors, false);
  ggml_build_forward_expand(graph, piece);
  return ggml_backend_graph_compute(backend_, graph) == GGML_STATUS_SUCCESS;
}

}  // namespace onpolicy
