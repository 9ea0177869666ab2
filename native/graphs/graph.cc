#include "graphs/graph.h"

namespace onpolicy::training {

Tensor TensorNamed(ggml_context* tensors, const std::string& name) {
  const Library& api = Api();
  Tensor tensor = api.ggml_get_first_tensor(tensors);
  while (tensor && name != tensor->name) tensor = api.ggml_get_next_tensor(tensors, tensor);
  return tensor;
}

ggml_type TypeNamed(const std::string& name) {
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const char* known = Api().ggml_type_name(static_cast<ggml_type>(i));
    if (known && name == known) return static_cast<ggml_type>(i);
  }
  return GGML_TYPE_COUNT;
}

Graph::Graph(size_t max_nodes)
    : TensorFormulas(2 * max_nodes * Api().ggml_tensor_overhead() + Api().ggml_graph_overhead_custom(max_nodes, false)),
      graph_(api_.ggml_new_graph_custom(context_, max_nodes, false)) {}

Tensor Graph::Add(Tensor tensor) {
  api_.ggml_build_forward_expand(graph_, tensor);
  return tensor;
}

Tensor Graph::At(Slot slot, ggml_type type, std::initializer_list<int64_t> shape) {
  return Pin(api_.ggml_new_tensor(context_, type, static_cast<int>(shape.size()), shape.begin()), slot);
}

Tensor Graph::Pin(Tensor tensor, Slot slot) {
  Tensor owner = tensor->view_src ? tensor->view_src : tensor;
  if (slot.arena && slot.arena->buffer())
    api_.ggml_backend_tensor_alloc(slot.arena->buffer(), owner, slot.arena->AddressOf(slot.offset));
  else
    owner->data = owner;  // of a graph that is only measured: somewhere
  return tensor;
}

Tensor TensorViews::Slice(Tensor x, int dimension, int64_t start, int64_t count) {
  int64_t shape[3] = {x->ne[0], x->ne[1], x->ne[2]};
  shape[dimension] = count;
  return api_.ggml_view_3d(context_, x, shape[0], shape[1], shape[2], x->nb[1], x->nb[2],
                           static_cast<size_t>(start) * x->nb[dimension]);
}

Tensor TensorViews::Part(Tensor x, int64_t index) {
  return api_.ggml_view_2d(context_, x, x->ne[0], x->ne[2], x->nb[2], static_cast<size_t>(index) * x->nb[1]);
}

void Zero(Slot slot, int64_t count) {
  Graph graph(1);
  Api().ggml_backend_tensor_memset(graph.At(slot, GGML_TYPE_F32, {count}), 0, 0,
                                   static_cast<size_t>(count) * sizeof(float));
}

void Upload(Slot slot, ggml_type type, const void* values, size_t count) {
  Graph graph(1);
  const auto size = static_cast<int64_t>(count);
  Api().ggml_backend_tensor_set(graph.At(slot, type, {size}), values, 0, Api().ggml_row_size(type, size));
}

}  // namespace onpolicy::training
