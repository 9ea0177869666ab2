#include "trainer/attention.h"

#include <algorithm>

#include "kernels/attention/attention.h"
#include "trainer/graphs/share.h"

namespace onpolicy::training {
namespace {

// One block's part of the row. Queries of the heads that share keys are in one matrix: (head size, queries x group, kv heads).
class Block {
 public:
  Block(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks,
        const QueryBlock& block)
      : graph_(graph), matmuls_(matmuls), shape_(shape), sinks_(sinks), block_(block) {
    const size_t first = block.mask_offset + (shape.window > 0 ? attention.plan.first_local_mask : 0);
    mask_ = graph.At({attention.masks.arena, attention.masks.offset + first * sizeof(uint16_t)}, GGML_TYPE_F16,
                      {block.key_count, block.count});
  }

  // (head size, heads, row) -> (head size, queries x group, kv heads)
  Tensor Queries(Tensor x) {
    Tensor part = graph_.Permute(graph_.Slice(x, 2, block_.start, block_.count), 0, 2, 1, 3);
    return graph_.Reshape(graph_.Contiguous(part), shape_.head_size, block_.count * shape_.heads_per_kv(),
                          shape_.kv_heads);
  }

  // (head size, queries x group, kv heads) -> written to its place in (head size, heads, row)
  void StoreQueries(Tensor part, Tensor x) {
    Tensor heads = graph_.Reshape(part, shape_.head_size, block_.count, shape_.heads);
    graph_.Add(graph_.Copy(graph_.Permute(heads, 0, 2, 1, 3), graph_.Slice(x, 2, block_.start, block_.count)));
  }

  // (head size, kv heads, row) -> (head size, keys, kv heads)
  Tensor Keys(Tensor x) {
    Tensor rows = nullptr;
    for (const KeyRange& range : block_.keys) {
      Tensor part = graph_.Slice(x, 2, range.start, range.count);
      rows = rows ? graph_.Concat(rows, part, 2) : part;
    }
    return graph_.Permute(rows, 0, 2, 1, 3);
  }

  // (head size, keys, kv heads), added to its places in (head size, kv heads, row)
  void AddKeys(Tensor part, Tensor x) {
    int64_t at = 0;
    for (const KeyRange& range : block_.keys) {
      Tensor place = graph_.Permute(graph_.Slice(x, 2, range.start, range.count), 0, 2, 1, 3);
      graph_.Add(graph_.PlusInPlace(place, graph_.Slice(part, 1, at, range.count)));
      at += range.count;
    }
  }

  // (keys, queries x group, kv heads)
  Tensor Probabilities(Tensor keys, Tensor queries) {
    Tensor scores = graph_.Reshape(matmuls_.Multiply(keys, queries), block_.key_count, block_.count, shape_.heads);
    if (shape_.cap == 0) return Grouped(graph_.SoftMax(scores, mask_, shape_.scale, sinks_));
    bounded_ = graph_.Tanh(graph_.Scale(scores, shape_.scale / shape_.cap));
    return Grouped(graph_.SoftMax(graph_.Scale(bounded_, shape_.cap), mask_, 1.0f, sinks_));
  }

  // Gradient of the probabilities -> gradient of the matmul of keys and queries.
  Tensor ScoresBack(Tensor gradient, Tensor probabilities) {
    const float scale = shape_.scale;
    if (!bounded_) return Grouped(graph_.SoftMaxBack(gradient, probabilities, scale));
    Tensor slope = graph_.Scale(graph_.Square(bounded_), -scale, scale);
    return graph_.Times(Grouped(graph_.SoftMaxBack(gradient, probabilities, 1.0f)), Grouped(slope));
  }

  Tensor Grouped(Tensor scores) {
    return graph_.Reshape(scores, block_.key_count, block_.count * shape_.heads_per_kv(), shape_.kv_heads);
  }

 private:
  Graph& graph_;
  Matmuls& matmuls_;
  const AttentionShape& shape_;
  const Tensor sinks_;
  const QueryBlock& block_;
  Tensor mask_;
  Tensor bounded_ = nullptr;  // capped scores over the cap, (keys, queries, heads), or null
};

// One layer's attention, read from the tensors of a graph node.
struct Layout {
  const std::vector<TokenRun>* runs;
  int64_t window;
  float scale;
  std::atomic<int64_t>* next;
};

attention::Attention AttentionOf(const TokenRun& run, const Layout& layout, Tensor output) {
  const Tensor query = output->src[1], key = output->src[2], value = output->src[3], sinks = output->src[4];
  const auto bytes = [](Tensor tensor) { return static_cast<const uint8_t*>(tensor->data); };
  attention::Attention a{};
  a.q = bytes(query) + static_cast<size_t>(run.start) * query->nb[2];
  a.k = bytes(key);
  a.v = bytes(value);
  a.y = static_cast<float*>(output->data) + run.start * output->ne[0] * output->ne[1];
  a.q_token = query->nb[2], a.q_head = query->nb[1];
  a.k_cell = key->nb[2], a.k_head = key->nb[1];
  a.v_cell = value->nb[2], a.v_head = value->nb[1];
  a.streams = 1, a.tokens = run.count, a.heads = query->ne[1], a.kv_heads = key->ne[1];
  a.cells = static_cast<int64_t>(run.places.size());
  a.k_width = a.v_width = static_cast<int>(query->ne[0]);
  a.type = attention::CellType::kF32;
  a.scale = layout.scale;
  a.sight = {.first_token = run.seen, .window = layout.window};
  a.places = run.places.data();
  if (sinks) a.sinks = static_cast<const float*>(sinks->data);
  return a;
}

// Fills the output. src[1] to src[4]: query, key, value, and sinks if there are any.
void AttentionShare(Tensor output, int, int, void* data) {
  const Layout& layout = *static_cast<const Layout*>(data);
  int64_t first = 0;  // task of the run
  std::vector<int64_t> firsts;
  for (const TokenRun& run : *layout.runs) {
    firsts.push_back(first);
    const attention::Attention attention = AttentionOf(run, layout, output);
    first += attention::Plan(attention, /*threads=*/1).tasks();
  }
  Share(*layout.next, first, [&](int64_t task) {
    const auto index = static_cast<size_t>(std::upper_bound(firsts.begin(), firsts.end(), task) - firsts.begin()) - 1;
    const attention::Attention attention = AttentionOf((*layout.runs)[index], layout, output);
    const attention::Plan plan(attention, /*threads=*/1);
    plan.Run(*attention::BestKernels(), task - firsts[index], 0, ThreadMemory(plan.work_bytes()));
  });
}

// Fills `output`. `runs` has to outlive the graph.
void FusedAttention(Graph& graph, const AttentionShape& shape, const std::vector<TokenRun>& runs, Tensor sinks, Tensor query, Tensor key, Tensor value,
                    Tensor output) {
  Layout* layout = graph.Keep(Layout{&runs, shape.window, shape.scale, graph.Counter()});
  if (sinks)
    graph.Add(graph.Custom(output, {query, key, value, sinks}, AttentionShare, layout));
  else
    graph.Add(graph.Custom(output, {query, key, value}, AttentionShare, layout));
}

}  // namespace

bool HasFusedAttention(const Device& device, const Shape& shape) {
  if (!device.is_cpu() || !attention::BestKernels()) return false;
  return std::all_of(shape.of_layer.begin(), shape.of_layer.end(), [](const LayerShape& layer) {
    return layer.attention.head_size % attention::kLanes == 0 && layer.attention.cap == 0;
  });
}

void AttentionForward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output) {
  if (!attention.runs.empty()) return FusedAttention(graph, shape, attention.runs, sinks, query, key, value, output);
  for (const QueryBlock& range : attention.plan.blocks) {
    Block block(graph, matmuls, shape, attention, sinks, range);
    Tensor probabilities = block.Probabilities(block.Keys(key), block.Queries(query));
    block.StoreQueries(matmuls.Multiply(matmuls.Transposed(block.Keys(value)), probabilities), output);
  }
}

void AttentionBackward(Graph& graph, Matmuls& matmuls, const AttentionShape& shape, const RowAttention& attention, Tensor sinks, Tensor query, Tensor key, Tensor value, Tensor output_gradient, Tensor query_gradient,
                       Tensor key_gradient, Tensor value_gradient) {
  for (const QueryBlock& range : attention.plan.blocks) {
    Block block(graph, matmuls, shape, attention, sinks, range);
    Tensor queries = block.Queries(query), keys = block.Keys(key), values = block.Keys(value);
    Tensor probabilities = block.Probabilities(keys, queries);
    Tensor gradient = block.Queries(output_gradient);
    block.AddKeys(matmuls.Multiply(matmuls.Transposed(gradient), matmuls.Transposed(probabilities)), value_gradient);
    Tensor scores_gradient = block.ScoresBack(matmuls.Multiply(values, gradient), probabilities);
    block.StoreQueries(matmuls.Multiply(matmuls.Transposed(keys), scores_gradient), query_gradient);
    block.AddKeys(matmuls.Multiply(matmuls.Transposed(queries), matmuls.Transposed(scores_gradient)), key_gradient);
  }
}

}  // namespace onpolicy::training
