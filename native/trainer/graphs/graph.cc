#include "trainer/graphs/graph.h"

#include <unordered_set>

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

ggml_context* TensorViews::context() {
  constexpr size_t kFunctions = 64, kTensorsOfFunction = 4;  // a function makes one tensor, or two
  if (functions_++ % kFunctions == 0)
    contexts_.push_back(api_.ggml_init(
        {.mem_size = kFunctions * kTensorsOfFunction * api_.ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  return contexts_.back();
}

Graph::~Graph() {
  if (graph_context_) api_.ggml_free(graph_context_);
}

Tensor Graph::Add(Tensor tensor) {
  added_.push_back(tensor);
  return tensor;
}

size_t Graph::size() const {
  if (graph_) return size_;
  std::unordered_set<Tensor> found;
  std::vector<Tensor> waiting = added_;
  while (!waiting.empty()) {
    Tensor tensor = waiting.back();
    waiting.pop_back();
    if (!found.insert(tensor).second) continue;
    for (Tensor source : tensor->src)
      if (source) waiting.push_back(source);
  }
  return found.size();
}

ggml_cgraph* Graph::get() {
  if (graph_) return graph_;
  size_ = size();
  graph_context_ = api_.ggml_init({.mem_size = api_.ggml_graph_overhead_custom(size_, false), .mem_buffer = nullptr, .no_alloc = true});
  graph_ = api_.ggml_new_graph_custom(graph_context_, size_, false);
  for (Tensor tensor : added_) api_.ggml_build_forward_expand(graph_, tensor);
  return graph_;
}

Tensor Graph::At(Slot slot, ggml_type type, std::initializer_list<int64_t> shape) {
  return Pin(api_.ggml_new_tensor(context(), type, static_cast<int>(shape.size()), shape.begin()), slot);
}

Tensor Graph::Pin(Tensor tensor, Slot slot) {
  Tensor owner = tensor->view_src ? tensor->view_src : tensor;
  if (slot.arena && slot.arena->buffer())
    api_.ggml_backend_tensor_alloc(slot.arena->buffer(), owner, slot.arena->AddressOf(slot.offset));
  else
    owner->data = owner;  // the graph is only measured, so the address does not matter
  return tensor;
}

Tensor TensorViews::Slice(Tensor x, int dimension, int64_t start, int64_t count) {
  int64_t shape[3] = {x->ne[0], x->ne[1], x->ne[2]};
  shape[dimension] = count;
  return api_.ggml_view_3d(context(), x, shape[0], shape[1], shape[2], x->nb[1], x->nb[2],
                           static_cast<size_t>(start) * x->nb[dimension]);
}

Tensor TensorViews::Part(Tensor x, int64_t index) {
  return api_.ggml_view_2d(context(), x, x->ne[0], x->ne[2], x->nb[2], static_cast<size_t>(index) * x->nb[1]);
}

void Zero(Slot slot, int64_t count) {
  Graph graph;
  Api().ggml_backend_tensor_memset(graph.At(slot, GGML_TYPE_F32, {count}), 0, 0,
                                   static_cast<size_t>(count) * sizeof(float));
}

void Upload(Slot slot, ggml_type type, const void* values, size_t count) {
  Graph graph;
  const auto size = static_cast<int64_t>(count);
  Api().ggml_backend_tensor_set(graph.At(slot, type, {size}), values, 0, Api().ggml_row_size(type, size));
}

}  // namespace onpolicy::training
