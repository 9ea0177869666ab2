#include "trainer/weights/expert-matmul.h"

#include <algorithm>
#include <vector>

#include "kernels/f32-matmul.h"
#include "kernels/low-rank.h"
#include "kernels/matmul/matmul.h"
#include "trainer/graphs/share.h"

namespace onpolicy::training {
namespace {

namespace np = matmul;

// Outputs and inputs of a piece.
constexpr int64_t kExpertOutputs = 8 * np::kPanel, kExpertInputs = 256;

size_t WholeLines(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The rows of x, (size, 1 or used, tokens), that an expert multiplies.
class ExpertRows {
 public:
  ExpertRows(Tensor x, Tensor ids, int64_t expert) : x_(x), used_(ids->ne[0]) {
    for (int64_t i = 0; i < used_ * ids->ne[1]; ++i)
      if (*reinterpret_cast<const int32_t*>(At(ids, i % used_, i / used_, ids->nb[0], ids->nb[1])) == expert) rows_.push_back(i);
  }

  int64_t count() const { return static_cast<int64_t>(rows_.size()); }
  size_t bytes() const { return WholeLines(rows_.size() * static_cast<size_t>(x_->ne[0]) * sizeof(float)); }
  // (size, count)
  void Gather(float* to) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const char* from = At(x_, x_->ne[1] == 1 ? 0 : rows_[i] % used_, rows_[i] / used_, x_->nb[1], x_->nb[2]);
      std::copy_n(reinterpret_cast<const float*>(from), x_->ne[0], to + static_cast<int64_t>(i) * x_->ne[0]);
    }
  }
  // (width, count) -> the same rows of y, from `first` on
  void Scatter(const float* from, int64_t width, Tensor y, int64_t first) const {
    for (size_t i = 0; i < rows_.size(); ++i)
      std::copy_n(from + static_cast<int64_t>(i) * width, width, static_cast<float*>(y->data) + rows_[i] * y->ne[0] + first);
  }

 private:
  static const char* At(Tensor tensor, int64_t i, int64_t j, size_t step, size_t stride) {
    return static_cast<const char*>(tensor->data) + static_cast<size_t>(i) * step + static_cast<size_t>(j) * stride;
  }

  Tensor x_;
  int64_t used_;
  std::vector<int64_t> rows_;
};

// `work` gets an expert's weights, its rows, and the first and the number of its share of `width` columns of y.
template <typename Work>
void EachExpert(Tensor y, int64_t width, void* counter, Work work) {
  const Tensor weight = y->src[0];
  const int64_t pieces = (y->ne[0] + width - 1) / width;
  Share(*static_cast<std::atomic<int64_t>*>(counter), weight->ne[2] * pieces, [&](int64_t piece) {
    const ExpertRows rows(y->src[1], y->src[2], piece / pieces);
    const int64_t first = piece % pieces * width;
    if (rows.count() > 0)
      work(static_cast<const uint8_t*>(weight->data) + static_cast<size_t>(piece / pieces) * weight->nb[2], rows, first,
           std::min(width, y->ne[0] - first));
  });
}

// Fills (size, rank, experts); src[0]: (size, 1 or used, tokens); src[1]: (rank, used, tokens); src[2]: (used, tokens).
void ExpertOuterShare(Tensor out, int, int, void* counter) {
  const int64_t size = out->ne[0], rank = out->ne[1];
  Share(*static_cast<std::atomic<int64_t>*>(counter), out->ne[2], [&](int64_t expert) {
    const ExpertRows wide(out->src[0], out->src[2], expert), low(out->src[1], out->src[2], expert);
    uint8_t* memory = ThreadMemory(wide.bytes() + low.bytes());
    auto *x = reinterpret_cast<float*>(memory), *h = reinterpret_cast<float*>(memory + wide.bytes());
    wide.Gather(x);
    low.Gather(h);
    auto* sums = static_cast<float*>(out->data) + expert * size * rank;
    OuterLowRank(sums, x, h, size, rank, wide.count(), 0, size);
  });
}

}  // namespace

Tensor ExpertOuter(Graph& graph, Tensor x, Tensor low, Tensor ids, int64_t experts) {
  return graph.Custom({x->ne[0], low->ne[0], experts}, {x, low, ids}, ExpertOuterShare, graph.Counter());
}

void ExpertShare(Tensor y, int, int, void* counter) {
  const Tensor weight = y->src[0];
  const np::Format& format = *np::FormatOf(weight->type);
  const np::Kernels& kernels = *np::BestKernels();
  const int64_t size = weight->ne[0], outputs = weight->ne[1];
  EachExpert(y, kExpertOutputs, counter, [&](const uint8_t* weights, const ExpertRows& rows, int64_t first, int64_t width) {
    const size_t packed = WholeLines(np::PackedBytes(format, size, width)), inputs = rows.bytes();
    const size_t rounded = WholeLines(np::RoundedBytes(format, size, rows.count()));
    uint8_t* memory =
        ThreadMemory(packed + inputs + rounded + static_cast<size_t>(rows.count() * width) * sizeof(float));
    np::PackedMatrix part{&format, weights, size, outputs};
    part.rows = width;
    np::PackPanels(part, part.panels + first * format.row_bytes(size), 0, part.panel_count(), memory);
    part.panels = memory;
    auto* gathered = reinterpret_cast<float*>(memory + packed);
    rows.Gather(gathered);
    auto* blocks = reinterpret_cast<int32_t*>(memory + packed + inputs);
    np::RoundBlocks(kernels, format, size, {gathered, static_cast<size_t>(size) * sizeof(float), rows.count()}, 0, size / np::kBlock,
                    blocks);
    auto* results = reinterpret_cast<float*>(memory + packed + inputs + rounded);
    np::MultiplyPanels(kernels, part, blocks, rows.count(), 0, part.panel_count(), {results, width});
    rows.Scatter(results, width, y, first);
  });
}

void ExpertBackShare(Tensor y, int, int, void* counter) {
  const Tensor weight = y->src[0];
  const Library& api = Api();
  const auto to_float = api.ggml_get_type_traits(weight->type)->to_float;
  const int64_t outputs = weight->ne[1];
  EachExpert(y, kExpertInputs, counter, [&](const uint8_t* weights, const ExpertRows& rows, int64_t first, int64_t width) {
    const size_t strip = WholeLines(static_cast<size_t>(width * outputs) * sizeof(float));
    uint8_t* memory = ThreadMemory(strip + rows.bytes() + static_cast<size_t>(rows.count() * width) * sizeof(float));
    auto* values = reinterpret_cast<float*>(memory);  // (width, outputs)
    for (int64_t i = 0; i < outputs; ++i)
      to_float(weights + static_cast<size_t>(i) * weight->nb[1] + api.ggml_row_size(weight->type, first), values + i * width, width);
    auto* gathered = reinterpret_cast<float*>(memory + strip);
    rows.Gather(gathered);
    auto* results = reinterpret_cast<float*>(memory + strip + rows.bytes());
    F32Matmul(results, {values, width, 1}, {gathered, 1, outputs}, outputs, width, 0, rows.count());
    rows.Scatter(results, width, y, first);
  });
}

}  // namespace onpolicy::training
