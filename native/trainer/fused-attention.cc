#include "trainer/fused-attention.h"

#include <algorithm>

#include "attention/attention.h"
#include "graphs/share.h"

namespace onpolicy::training {
namespace {

// One layer's attention, as a node of a graph finds it.
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

}  // namespace

bool HasFusedAttention(const Device& device, const Shape& shape) {
  if (!device.is_cpu() || !attention::BestKernels()) return false;
  return std::all_of(shape.of_layer.begin(), shape.of_layer.end(), [](const LayerShape& layer) {
    return layer.attention.head_size % attention::kLanes == 0 && layer.attention.cap == 0;
  });
}

void FusedAttention(Graph& graph, const AttentionShape& shape, const std::vector<TokenRun>& runs, Tensor sinks, Tensor query, Tensor key, Tensor value,
                    Tensor output) {
  Layout* layout = graph.Keep(Layout{&runs, shape.window, shape.scale, graph.Counter()});
  if (sinks)
    graph.Add(graph.Custom(output, {query, key, value, sinks}, AttentionShare, layout));
  else
    graph.Add(graph.Custom(output, {query, key, value}, AttentionShare, layout));
}

}  // namespace onpolicy::training
