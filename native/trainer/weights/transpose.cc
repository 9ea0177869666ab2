// Frozen weights -> transposed copies, so that the backward pass multiplies at the speed of the forward pass.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/threads.h"
#include "kernels/float-transpose.h"
#include "kernels/matmul/matmul.h"
#include "trainer/graphs/share.h"
#include "trainer/weights/matmul.h"

namespace onpolicy::training {
namespace {

// Rows of the original that one thread transposes at a time: a multiple of every type's block.
constexpr int64_t kBandRows = 512;

int64_t BandsOf(int64_t out) { return (out + kBandRows - 1) / kBandRows; }

// (in, out, n) of any type -> (out, in, n) of `type` at `target`, packed or not, one band of one original's rows per call.
void TransposeBand(Tensor weight, int64_t band, ggml_type type, bool is_packed, char* target) {
  const Library& api = Api();
  const int64_t in = weight->ne[0], out = weight->ne[1];
  const int64_t matrix = band / BandsOf(out);
  band %= BandsOf(out);
  const int64_t first = band * kBandRows, count = std::min(kBandRows, out - first);
  const size_t row_bytes = api.ggml_row_size(weight->type, in);
  const char* source = static_cast<const char*>(weight->data) + static_cast<size_t>(matrix * out + first) * row_bytes;
  std::vector<float> rows(static_cast<size_t>(count * in)), columns(rows.size());
  if (weight->type == GGML_TYPE_F32)
    std::memcpy(rows.data(), source, static_cast<size_t>(count) * row_bytes);
  else
    api.ggml_get_type_traits(weight->type)->to_float(source, rows.data(), count * in);
  TransposeFloats(rows.data(), in, count, /*is_narrow=*/false, columns.data(), 0, in);
  const size_t piece = api.ggml_row_size(type, count), target_row = api.ggml_row_size(type, out);
  std::vector<char> packed(static_cast<size_t>(in) * piece);
  api.ggml_quantize_chunk(type, columns.data(), packed.data(), 0, in, count, nullptr);
  if (is_packed) {  // a band is whole blocks of all panels
    const matmul::Format& format = *matmul::FormatOf(type);
    for (int64_t i = 0; i < in; i += matmul::kPanel)
      format.pack(reinterpret_cast<const uint8_t*>(packed.data()) + static_cast<size_t>(i) * piece, count,
                  std::min(matmul::kPanel, in - i),
                  reinterpret_cast<uint8_t*>(target) + matmul::PackedBytes(format, out, i) + format.panel_bytes(first));
    return;
  }
  char* to = target + static_cast<size_t>(matrix * in) * target_row + api.ggml_row_size(type, first);
  for (int64_t i = 0; i < in; ++i) std::memcpy(to + i * target_row, packed.data() + i * piece, piece);
}

void TransposeInto(const Linear& linear, const Device& device) {
  const Library& api = Api();
  Tensor weight = linear.weight;
  Graph graph;
  Tensor target = graph.At(linear.transposed, linear.transposed_type, {linear.out(), linear.in(), linear.experts()});
  // Other devices' memory is filled through copies in host memory.
  std::vector<char> source, copy;
  ggml_tensor host = *weight;
  if (!device.is_cpu()) {
    source.resize(api.ggml_nbytes(weight));
    copy.resize(api.ggml_nbytes(target));
    api.ggml_backend_tensor_get(weight, source.data(), 0, source.size());
    host.data = source.data();
  }
  char* to = device.is_cpu() ? static_cast<char*>(target->data) : copy.data();
  std::atomic<int64_t> next{0};
  OnThreads(device.threads(), [&](int) {
    Share(next, linear.experts() * BandsOf(linear.out()), [&](int64_t band) {
      TransposeBand(&host, band, linear.transposed_type, linear.is_transposed_packed, to);
    });
  });
  if (!device.is_cpu()) api.ggml_backend_tensor_set(target, copy.data(), 0, copy.size());
}

}  // namespace

// A model in F32 keeps its precision. BF16 keeps a gradient's range; Q8_0, with gradients scaled into its range, is smaller
// and on most CPUs twice as fast, and no coarser than the forward pass of a quantized weight.
ggml_type Weights::TransposedType(const Linear& linear) {
  if (linear.weight->type == GGML_TYPE_F32) return GGML_TYPE_F32;
  const bool fits_blocks = linear.out() % Api().ggml_blck_size(GGML_TYPE_Q8_0) == 0;
  return Api().ggml_is_quantized(linear.weight->type) && fits_blocks ? GGML_TYPE_Q8_0 : GGML_TYPE_BF16;
}

std::vector<Linear*> Weights::TransposedLinears() {
  std::vector<Linear*> list;
  for (Layer& layer : layers) {
    const size_t unused = &layer == &layers[0] ? layer.mixer_inputs().size() : 0;  // nothing trains below the first layer
    const std::vector<Linear*> linears = layer.linears();
    list.insert(list.end(), linears.begin() + static_cast<std::ptrdiff_t>(unused), linears.end());
  }
  list.push_back(&head);
  std::erase_if(list, [](const Linear* linear) { return linear->is_read_back; });
  return list;
}

std::vector<Linear*> Weights::AllLinears() {
  std::vector<Linear*> list = {&head};
  for (Layer& layer : layers)
    for (Linear* linear : layer.linears()) list.push_back(linear);
  return list;
}

size_t Weights::TransposedBytes(const Linear& linear) {
  const ggml_type type = TransposedType(linear);
  if (CanPackTransposed(linear)) return matmul::PackedBytes(*matmul::FormatOf(type), linear.out(), linear.in());
  return static_cast<size_t>(linear.in() * linear.experts()) * Api().ggml_row_size(type, linear.out());
}

bool Weights::CanPackTransposed(const Linear& linear) {
  return linear.experts() == 1 && Matmuls::HasKernels(TransposedType(linear), linear.out());
}

void Weights::Widen(Device* device) {
  const Library& api = Api();
  shape.MakeExact();
  widened_ = std::make_unique<Arena>(device);
  std::vector<std::pair<Linear*, size_t>> places;
  for (Linear* linear : AllLinears()) {
    if (linear->weight->type == GGML_TYPE_F32) continue;
    const size_t bytes = static_cast<size_t>(api.ggml_nelements(linear->weight)) * sizeof(float);
    places.emplace_back(linear, widened_->Reserve(bytes));
  }
  widened_->Allocate();
  wide_tensors_ = std::make_unique<Graph>();
  for (auto& [linear, offset] : places) {
    Tensor from = linear->weight;
    std::vector<char> bytes(api.ggml_nbytes(from));
    api.ggml_backend_tensor_get(from, bytes.data(), 0, bytes.size());
    std::vector<float> values(static_cast<size_t>(api.ggml_nelements(from)));
    api.ggml_get_type_traits(from->type)->to_float(bytes.data(), values.data(), api.ggml_nelements(from));
    linear->weight = wide_tensors_->At({widened_.get(), offset}, GGML_TYPE_F32, {from->ne[0], from->ne[1], from->ne[2]});
    api.ggml_backend_tensor_set(linear->weight, values.data(), 0, values.size() * sizeof(float));
  }
  PlanTransposed(*device);
}

void Weights::PlanTransposed(const Device& device) {
  for (Linear* linear : AllLinears()) {
    linear->is_read_back = device.is_cpu() && linear->experts() > 1 && Matmuls::CanReadBack(linear->weight->type);
    linear->transposed_type = TransposedType(*linear);
    linear->is_transposed_packed = device.is_cpu() && CanPackTransposed(*linear);
  }
}

size_t Weights::transposed_bytes() const {
  size_t bytes = 0;
  for (Linear* linear : const_cast<Weights*>(this)->TransposedLinears())
    bytes += TransposedBytes(*linear);
  return bytes;
}

void Weights::Transpose(Device* device) {
  if (transposed_) return;
  auto arena = std::make_unique<Arena>(device);
  std::vector<Linear*> list = TransposedLinears();
  for (Linear* linear : list) linear->transposed = {arena.get(), arena->Reserve(TransposedBytes(*linear))};
  arena->Allocate();
  for (Linear* linear : list) {
    if (device->aborted()) throw Failure("ABORTED", "training was aborted");
    TransposeInto(*linear, *device);
  }
  transposed_ = std::move(arena);
}

}  // namespace onpolicy::training
